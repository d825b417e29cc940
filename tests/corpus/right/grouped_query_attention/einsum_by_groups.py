# right: einsum with an axis for the groups, all exceptions by assert, the mask as a buffer
import torch
from torch import nn


def grouped(heads, num_kv_heads):
    assert heads.size(1) % num_kv_heads == 0, "the heads cannot be put into equal groups"
    return heads.unflatten(1, (num_kv_heads, heads.size(1) // num_kv_heads))


def grouped_scores(queries, keys):
    scaled = grouped(queries, keys.size(1)) * queries.size(-1) ** -0.5
    return torch.einsum("bjgqd,bjkd->bjgqk", scaled, keys).flatten(1, 2)


def grouped_context(weights, values):
    return torch.einsum("bjgqk,bjkd->bjgqd", grouped(weights, values.size(1)), values).flatten(1, 2)


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, num_kv_heads):
        super().__init__()
        assert d_out % num_heads == 0 and num_heads % num_kv_heads == 0
        d_head = d_out // num_heads
        self.shapes = (num_heads, d_head), (num_kv_heads, d_head)
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.rate = dropout
        past = torch.tril(torch.ones(context_length, context_length)).bool()
        self.register_buffer("past", past)

    def forward(self, x):
        n = x.size(-2)
        assert n <= len(self.past)
        ours, shared = self.shapes
        q = self.W_query(x).unflatten(-1, ours).movedim(-2, -3)
        k = self.W_key(x).unflatten(-1, shared).movedim(-2, -3)
        v = self.W_value(x).unflatten(-1, shared).movedim(-2, -3)
        scores = torch.where(self.past[:n, :n], grouped_scores(q, k), float("-inf"))
        weights = nn.functional.dropout(scores.softmax(-1), self.rate, self.training)
        return self.out_proj(grouped_context(weights, v).movedim(-3, -2).flatten(-2))
