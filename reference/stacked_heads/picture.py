"""The attention weights of every head, read from the module's output.

The values are set to the identity matrix, so a head's output for a token is the list of its
weights.
"""

import torch

TOKENS = ("the", "cat", "saw", "her", "kitten")
HEADS, D_EMBEDDING = 3, 4
N_TOKENS = len(TOKENS)


def weights(module):
    """Return the module's attention weights, (heads, n_tokens, n_tokens), one row per query."""
    generator = torch.Generator().manual_seed(1)
    embeddings = torch.randn(N_TOKENS, D_EMBEDDING, generator=generator)
    identity = torch.eye(N_TOKENS)
    x = torch.cat([embeddings, identity], dim=1).unsqueeze(0)  # (1, n_tokens, d_in)
    d_in = x.shape[-1]

    def reading_embeddings():
        layer = torch.randn(N_TOKENS, d_in, generator=generator)
        layer[:, D_EMBEDDING:] = 0
        return layer

    state = {}
    for head in range(HEADS):
        state[f"heads.{head}.W_query.weight"] = reading_embeddings()
        state[f"heads.{head}.W_key.weight"] = reading_embeddings()
        layer = torch.cat([torch.zeros(N_TOKENS, D_EMBEDDING), identity], dim=1)
        state[f"heads.{head}.W_value.weight"] = layer
    stacked = module.StackedHeads(d_in, N_TOKENS, N_TOKENS, 0.0, HEADS)
    stacked.load_state_dict(state, strict=False)
    with torch.no_grad():
        output = stacked.eval()(x)  # (1, n_tokens, heads * n_tokens)
    return output.view(N_TOKENS, HEADS, N_TOKENS).transpose(0, 1)  # (heads, n_tokens, n_tokens)
