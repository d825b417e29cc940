"""The attention weights of every head, read from the module's output.

Four heads share two heads of keys. The values are set to the identity matrix, so a head's output
for a token is the list of its weights.
"""

import torch

TOKENS = ("the", "cat", "saw", "her", "kitten")
HEADS, KV_HEADS, D_EMBEDDING = 4, 2, 4
N_TOKENS = len(TOKENS)


def weights(module):
    """Return the module's attention weights, (heads, n_tokens, n_tokens), one row per query."""
    d_out = HEADS * N_TOKENS  # so that a head has one column for each token
    generator = torch.Generator().manual_seed(1)
    embeddings = torch.randn(N_TOKENS, D_EMBEDDING, generator=generator)
    identity = torch.eye(N_TOKENS)
    x = torch.cat([embeddings, identity], dim=1).unsqueeze(0)  # (1, n_tokens, d_in)
    d_in = x.shape[-1]

    def reading_embeddings(heads):
        layer = torch.randn(heads * N_TOKENS, d_in, generator=generator) * 0.6
        layer[:, D_EMBEDDING:] = 0
        return layer

    reading_tokens = torch.cat([torch.zeros(N_TOKENS, D_EMBEDDING), identity], dim=1)
    state = {
        "W_query.weight": reading_embeddings(HEADS),
        "W_key.weight": reading_embeddings(KV_HEADS),
        "W_value.weight": reading_tokens.repeat(KV_HEADS, 1),
        "out_proj.weight": torch.eye(d_out),
        "out_proj.bias": torch.zeros(d_out),
    }
    attention = module.GroupedQueryAttention(d_in, d_out, N_TOKENS, 0.0, HEADS, KV_HEADS)
    attention.load_state_dict(state, strict=False)
    with torch.no_grad():
        output = attention.eval()(x)  # (1, n_tokens, heads * n_tokens)
    return output.view(N_TOKENS, HEADS, N_TOKENS).transpose(0, 1)  # (heads, n_tokens, n_tokens)
