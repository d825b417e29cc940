"""The attention weights in a window, of a head without a bias and of one with a slope.

The values are the identity matrix, so a token's output is the list of its weights.
"""

import torch

TOKENS = ("the", "cat", "saw", "her", "kitten", "run", "home")
N_TOKENS, D_HEAD, WINDOW = len(TOKENS), 4, 4
SLOPES = (0.0, 0.5)


def weights(module):
    """Return the attention weights, (heads, n_tokens, n_tokens), one row per query."""
    generator = torch.Generator().manual_seed(1)
    shape = 1, len(SLOPES), N_TOKENS, D_HEAD
    queries, keys = (torch.randn(shape, generator=generator) for _ in range(2))
    values = torch.eye(N_TOKENS).expand(1, len(SLOPES), -1, -1)  # (1, heads, n_tokens, n_tokens)
    return module.sliding_attention(queries, keys, values, WINDOW, torch.tensor(SLOPES))[0]
