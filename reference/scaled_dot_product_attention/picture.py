"""The attention weights, read from the module's output.

The values are the identity matrix, so a token's output is the list of its weights. The last word is
padding.
"""

import torch

TOKENS = ("the", "cat", "saw", "her", "(padding)")
N_TOKENS, D_KEY = len(TOKENS), 4


def weights(module):
    """Return the module's attention weights, (1, n_tokens, n_tokens), one row per query."""
    generator = torch.Generator().manual_seed(1)
    queries, keys = torch.randn(2, 1, N_TOKENS, D_KEY, generator=generator)
    values = torch.eye(N_TOKENS).unsqueeze(0)  # (1, n_tokens, n_tokens)
    attention = module.DotProductAttention(0.0)
    with torch.no_grad():
        return attention.eval()(queries, keys, values, torch.tensor([N_TOKENS - 1]))
