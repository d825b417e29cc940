"""Stacked heads in a few lines."""

from torch import cat, nn

from causal_attention import CausalAttention


class StackedHeads(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        sizes = d_in, d_out, context_length, dropout, qkv_bias
        self.heads = nn.ModuleList([CausalAttention(*sizes) for _ in range(num_heads)])

    def forward(self, x):
        return cat([head(x) for head in self.heads], 2)


def split_weights(stacked):
    layers = [[h.W_query, h.W_key, h.W_value] for h in stacked.heads]
    if layers[0][0].bias is not None:
        raise ValueError("split_weights needs heads without biases")
    return tuple(cat([layer.weight.data for layer in each]) for each in zip(*layers))
