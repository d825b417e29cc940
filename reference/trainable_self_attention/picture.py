"""The attention weights, read from the output of the version with linear layers.

The values are set to the identity matrix, so a token's output is the list of its weights.
"""

import torch

TOKENS = ("the", "cat", "saw", "her", "kitten")
D_EMBEDDING = 4
N_TOKENS = len(TOKENS)


def weights(module):
    """Return the module's attention weights, (1, n_tokens, n_tokens), one row per query."""
    generator = torch.Generator().manual_seed(1)
    embeddings = torch.randn(N_TOKENS, D_EMBEDDING, generator=generator)
    identity = torch.eye(N_TOKENS)
    x = torch.cat([embeddings, identity], dim=1)  # (n_tokens, d_in)
    d_in = x.shape[-1]

    def reading_embeddings():
        layer = torch.randn(N_TOKENS, d_in, generator=generator)
        layer[:, D_EMBEDDING:] = 0
        return layer

    state = {
        "W_query.weight": reading_embeddings(),
        "W_key.weight": reading_embeddings(),
        "W_value.weight": torch.cat([torch.zeros(N_TOKENS, D_EMBEDDING), identity], dim=1),
    }
    attention = module.SelfAttentionV2(d_in, N_TOKENS)
    attention.load_state_dict(state, strict=False)
    with torch.no_grad():
        return attention.eval()(x)[None]  # (1, n_tokens, n_tokens)
