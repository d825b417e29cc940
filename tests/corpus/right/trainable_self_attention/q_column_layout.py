import math

import torch
from torch import Tensor, nn

# Textbook layout: a token is a column. Queries, keys and values are (..., d_out, n_tokens) inside
# `_attend_columns`, and the table of scores has a row for each key and a column for each query.


def _attend_columns(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    table = k.transpose(-2, -1).matmul(q).div(math.sqrt(q.size(-2)))
    table = (table - table.amax(-2, keepdim=True).detach()).exp()
    table = table / table.sum(-2, keepdim=True)
    return v.matmul(table)


def scaled_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    return _attend_columns(queries.mT, keys.mT, values.mT).mT


class SelfAttentionV1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (
            nn.Parameter(torch.rand(d_in, d_out)) for _ in range(3)
        )

    def forward(self, x):
        x = x.transpose(-2, -1)
        q, k, v = (W.t().matmul(x) for W in (self.W_query, self.W_key, self.W_value))
        return _attend_columns(q, k, v).transpose(-2, -1)


class SelfAttentionV2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)

    def forward(self, x):
        return scaled_attention(self.W_query(x), self.W_key(x), self.W_value(x))


def copy_weights(source_v2, target_v1):
    layers = {n: getattr(source_v2, n) for n in ("W_query", "W_key", "W_value")}
    if not all(layer.bias is None for layer in layers.values()):
        raise ValueError("a source with biases cannot be copied")
    for name, layer in layers.items():
        setattr(target_v1, name, nn.Parameter(layer.weight.detach().t().clone()))
