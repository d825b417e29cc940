"""The attention weights of every head, read from the module's output.

The tokens come in three chunks, so that a mistake in what is cached shows. The values are set to
the identity matrix, so a token's output is the list of its weights.
"""

import torch

TOKENS = ("the", "cat", "saw", "her", "kitten")
CHUNKS = (1, 1, 3)
HEADS, D_EMBEDDING = 3, 4
N_TOKENS = len(TOKENS)


def weights(module):
    """Return the module's attention weights, (heads, n_tokens, n_tokens), one row per query."""
    d_out = HEADS * N_TOKENS  # so that a head has one column for each token
    generator = torch.Generator().manual_seed(1)
    embeddings = torch.randn(N_TOKENS, D_EMBEDDING, generator=generator)
    identity = torch.eye(N_TOKENS)
    x = torch.cat([embeddings, identity], dim=1).unsqueeze(0)  # (1, n_tokens, d_in)
    d_in = x.shape[-1]

    def reading_embeddings():
        layer = torch.randn(d_out, d_in, generator=generator) * 0.6
        layer[:, D_EMBEDDING:] = 0
        return layer

    state = {
        "W_query.weight": reading_embeddings(),
        "W_key.weight": reading_embeddings(),
        "W_value.weight": torch.cat(
            [torch.zeros(d_out, D_EMBEDDING), identity.repeat(HEADS, 1)], 1
        ),
        "out_proj.weight": torch.eye(d_out),
        "out_proj.bias": torch.zeros(d_out),
    }
    attention = module.CachedAttention(d_in, d_out, N_TOKENS, 0.0, HEADS)
    attention.load_state_dict(state, strict=False)
    attention.eval()
    outputs, cache = [], None
    with torch.no_grad():
        for chunk in x.split(CHUNKS, dim=1):
            output, cache = attention(chunk, cache)
            outputs.append(output)
    output = torch.cat(outputs, dim=1)  # (1, n_tokens, heads * n_tokens)
    return output.view(N_TOKENS, HEADS, N_TOKENS).transpose(0, 1)  # (heads, n_tokens, n_tokens)
