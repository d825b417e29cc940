"""The attention weights, read from the context vectors.

Each token is a sum of an embedding and a part of its own that no other token has, so a context
vector determines the weights.
"""

import torch

TOKENS = ("the", "cat", "saw", "her", "kitten")
D_EMBEDDING = 4
N_TOKENS = len(TOKENS)


def weights(module):
    """Return the attention weights, (1, n_tokens, n_tokens), one row per query."""
    generator = torch.Generator().manual_seed(1)
    embeddings = torch.randn(N_TOKENS, D_EMBEDDING, generator=generator)
    own = torch.eye(N_TOKENS)
    inputs = torch.cat([embeddings, own], dim=1)  # (n_tokens, d)
    with torch.no_grad():
        context = module.context_vectors(inputs)  # (n_tokens, d)
    return context[None, :, D_EMBEDDING:]  # (1, n_tokens, n_tokens)
