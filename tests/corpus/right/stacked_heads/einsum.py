"""Stacked heads, whose outputs are placed in the features by an einsum with one-hot rows."""

import torch
from torch import nn

from causal_attention import CausalAttention


class StackedHeads(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList()
        for _ in range(num_heads):
            self.heads.append(CausalAttention(d_in, d_out, context_length, dropout, qkv_bias))

    def forward(self, x):
        outputs = torch.stack([head(x) for head in self.heads])
        return torch.einsum("hbto->btho", outputs).flatten(2)


def split_weights(stacked):
    found = []
    for name in ("W_query", "W_key", "W_value"):
        layers = [getattr(head, name) for head in stacked.heads]
        if layers[0].bias is not None:
            raise ValueError("biases have no place in a matrix")
        found.append(torch.stack([layer.weight for layer in layers]).flatten(0, 1))
    return tuple(found)
