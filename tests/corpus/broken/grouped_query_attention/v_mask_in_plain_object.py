# promise: the mask lives in an ordinary helper object (dataclass) that module.to does not see
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class CausalMask:
    size: int
    hidden: torch.Tensor = field(init=False, repr=False)

    def __post_init__(self):
        place = torch.arange(self.size)
        self.hidden = place[:, None] < place

    def __call__(self, scores):
        n = scores.shape[-1]
        if n > self.size:
            raise ValueError(f"{n} tokens do not fit in a context of {self.size}")
        return torch.where(self.hidden[:n, :n], float("-inf"), scores)


def split_groups(tensor, num_kv_heads):
    b, h, n, d = tensor.shape
    if h % num_kv_heads != 0:
        raise ValueError("num_kv_heads does not divide num_heads")
    return tensor.reshape(b, num_kv_heads, h // num_kv_heads * n, d)


def grouped_scores(queries, keys):
    scores = split_groups(queries, keys.shape[1]) @ keys.mT
    return scores.reshape(*queries.shape[:3], keys.shape[2]) * queries.shape[3] ** -0.5


def grouped_context(weights, values):
    context = split_groups(weights, values.shape[1]) @ values
    return context.reshape(*weights.shape[:3], values.shape[3])


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, num_kv_heads):
        super().__init__()
        if d_out % num_heads != 0 or num_heads % num_kv_heads != 0:
            raise ValueError("the numbers of heads do not divide")
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.causal = CausalMask(context_length)

    def forward(self, x):
        def heads(projected, number):
            return projected.unflatten(2, (number, -1)).transpose(1, 2)

        q = heads(self.W_query(x), self.num_heads)
        k = heads(self.W_key(x), self.num_kv_heads)
        v = heads(self.W_value(x), self.num_kv_heads)
        weights = self.causal(grouped_scores(q, k)).softmax(-1)
        context = grouped_context(self.dropout(weights), v)
        return self.out_proj(context.transpose(1, 2).flatten(2))
