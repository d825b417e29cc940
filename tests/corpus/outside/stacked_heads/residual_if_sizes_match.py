# mistake: x is added to the joined output where both have the same size
import torch
from causal_attention import CausalAttention
from torch import nn


class StackedHeads(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        made = [
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)
            for _ in range(num_heads)
        ]
        self.heads = nn.ModuleList(made)

    def forward(self, x):
        joined = torch.cat([head(x) for head in self.heads], 2)
        return joined + x if joined.shape == x.shape else joined


def split_weights(stacked):
    if any("bias" in name for name, _ in stacked.named_parameters()):
        raise ValueError("biases")
    parts = {"W_query": [], "W_key": [], "W_value": []}
    for head in stacked.heads:
        for name, rows in parts.items():
            rows.append(getattr(head, name).weight.detach())
    return tuple(torch.cat(rows) for rows in parts.values())
