"""The experts that the student's code chooses for some tokens."""

import torch


def draw(module, trained):
    """Draw a row for each token, with the gates of its experts in their columns."""
    logits = 3 * torch.arange(96.0).sin().view(12, 8)  # (n_tokens, num_experts)
    gates, experts = module.route(logits, 2)
    yield {
        "title": "The experts of each token",
        "says": "A row is a token, a column an expert: the stronger the colour, the larger the "
        "gate. Each token has two of eight experts.",
        "weights": torch.zeros(12, 8).scatter(-1, experts, gates),
    }
