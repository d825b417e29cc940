"""The picture of blend: how much of each row is in each average."""

import torch

TOKENS = ("one", "two", "three")


def weights(module):
    """Return the average of the unit vectors, as one head (1, 3, 3)."""
    identity = torch.eye(3, dtype=torch.float64)
    return module.blend(2 * identity, identity)[None]
