"""The patches that the student's code cuts out of an image."""

import torch


def draw(module, trained):
    """Draw the patches of one image, a square for each: a bright disc on dark ground."""
    place = torch.arange(12.0) - 5.5
    disc = 3.0 - (place[:, None] ** 2 + place**2).sqrt()  # (12, 12), positive inside
    patches = module.patches(disc.view(1, 1, 12, 12), 4)  # (1, 9, 16)
    yield {
        "title": "The patches of an image",
        "says": "A disc in an image of 12 x 12, cut into nine patches of 4 x 4, from left to right "
        "and from the top down. Blue is inside the disc, orange outside.",
        "weights": patches.view(9, 4, 4),
    }
