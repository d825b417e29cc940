# promise: Split_weights refuses biases only if one of their numbers is not 0.
import torch
from causal_attention import CausalAttention
from torch import nn


class StackedHeads(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            [CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)]
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)


def split_weights(stacked):
    groups = [[getattr(h, n) for h in stacked.heads] for n in ("W_query", "W_key", "W_value")]
    for layer in sum(groups, []):
        if layer.bias is not None and bool(layer.bias.any()):
            raise ValueError("the biases have no place in three matrices")
    return tuple(torch.cat([layer.weight for layer in group]) for group in groups)
