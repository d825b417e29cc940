import math

import torch
from torch import nn
from torch.nn import functional as F

# All queries of a group are put below each other: one tall matrix for each head of the keys.


def _tall_product(left, right):
    batch, heads, rows, inner = left.shape
    kv_heads, columns = right.size(1), right.size(3)
    if heads % kv_heads != 0:
        raise ValueError("the heads cannot be shared evenly")
    tall = left.reshape(batch * kv_heads, heads // kv_heads * rows, inner)
    flat = right.flatten(0, 1)
    return torch.bmm(tall, flat).view(batch, heads, rows, columns)


def grouped_scores(queries, keys):
    return _tall_product(queries, keys.transpose(2, 3)).div(math.sqrt(queries.size(3)))


def grouped_context(weights, values):
    return _tall_product(weights, values)


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, num_kv_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("num_heads does not divide d_out")
        if num_heads % num_kv_heads != 0:
            raise ValueError("num_kv_heads does not divide num_heads")
        d_head = d_out // num_heads
        self.rate = dropout
        self.heads = (num_heads, num_kv_heads, num_kv_heads)
        for name, heads in zip(("W_query", "W_key", "W_value"), self.heads):
            setattr(self, name, nn.Linear(d_in, heads * d_head, bias=False))
        self.out_proj = nn.Linear(d_out, d_out, bias=True)
        future = torch.ones(context_length, context_length).triu(1).bool()
        self.register_buffer("future", future, persistent=False)

    def forward(self, x):
        batch, n, _ = x.size()
        if n > self.future.size(0):
            raise ValueError("too many tokens")
        split = []
        for layer, heads in zip((self.W_query, self.W_key, self.W_value), self.heads):
            split.append(torch.stack(layer(x).chunk(heads, dim=2), dim=1))
        queries, keys, values = split
        scores = grouped_scores(queries, keys)
        scores = torch.where(self.future[:n, :n], float("-inf"), scores)
        weights = F.dropout(F.softmax(scores, dim=3), self.rate, self.training)
        return self.out_proj(torch.cat(grouped_context(weights, values).unbind(1), dim=2))
