"""The attention weights, read from the module's output.

The values are set to the identity matrix, so a token's output is the list of its weights.
"""

import torch

TOKENS = ("the", "cat", "saw", "her", "kitten")
N_TOKENS = len(TOKENS)
D_QUERY, D_KEY, NUM_HIDDENS = 4, 3, 6


def weights(module):
    """Return the module's attention weights, (1, n_tokens, n_tokens), one row per query."""
    generator = torch.Generator().manual_seed(1)
    queries = torch.randn(1, N_TOKENS, D_QUERY, generator=generator)  # (1, n_tokens, d_query)
    keys = torch.randn(1, N_TOKENS, D_KEY, generator=generator)  # (1, n_tokens, d_key)
    state = {
        "W_q.weight": torch.randn(NUM_HIDDENS, D_QUERY, generator=generator),
        "W_k.weight": torch.randn(NUM_HIDDENS, D_KEY, generator=generator),
        "w_v.weight": torch.randn(1, NUM_HIDDENS, generator=generator),
    }
    attention = module.AdditiveAttention(D_QUERY, D_KEY, NUM_HIDDENS, 0.0)
    attention.load_state_dict(state, strict=False)
    with torch.no_grad():
        return attention.eval()(queries, keys, torch.eye(N_TOKENS)[None])
