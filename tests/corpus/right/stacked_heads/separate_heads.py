"""Stacked heads written into one tensor, head by head."""

import torch
from torch import nn

from causal_attention import CausalAttention


class StackedHeads(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        self.num_heads = num_heads
        self.qkv_bias = qkv_bias
        self.heads = nn.ModuleList(
            [
                CausalAttention(d_in, d_out, context_length, dropout, qkv_bias=qkv_bias)
                for _ in range(num_heads)
            ]
        )

    def forward(self, x):
        batch, n_tokens, _ = x.shape
        output = x.new_zeros(batch, n_tokens, self.num_heads * self.d_out)
        for i, head in enumerate(self.heads):
            output[:, :, i * self.d_out : (i + 1) * self.d_out] = head(x)
        return output


def split_weights(stacked):
    if stacked.qkv_bias:
        raise ValueError("the matrices would lose the biases")
    queries, keys, values = [], [], []
    for head in stacked.heads:
        queries.append(head.W_query.weight.detach().clone())
        keys.append(head.W_key.weight.detach().clone())
        values.append(head.W_value.weight.detach().clone())
    return torch.vstack(queries), torch.vstack(keys), torch.vstack(values)
