"""The attention weights, read from the module's output.

The values are set to the identity matrix, so a token's output is the list of its weights.
"""

import torch

TOKENS = ("the", "cat", "saw", "her", "kitten")
N_TOKENS = len(TOKENS)
D = 3


def weights(module):
    """Return the module's attention weights, (1, n_tokens, n_tokens), one row per query."""
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randn(1, N_TOKENS, D, generator=generator)  # (1, n_tokens, d)
    attention = module.DistanceAttention(0.0)
    with torch.no_grad():
        return attention.eval()(tokens, tokens, torch.eye(N_TOKENS)[None])
