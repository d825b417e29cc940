# style: additive mask from full_like of the scores, triu_ in place, bmm
import torch
from torch import nn


def grouped_scores(queries, keys):
    b, h, n, d = queries.shape
    _, kv, m, _ = keys.shape
    if h % kv != 0:
        raise ValueError("num_kv_heads must divide num_heads")
    q = queries.reshape(b * kv, (h // kv) * n, d)
    k = keys.reshape(b * kv, m, d)
    zero = torch.zeros_like(q[:1, :1, :1])
    return torch.baddbmm(zero, q, k.mT, alpha=d ** -0.5).reshape(b, h, n, m)


def grouped_context(weights, values):
    b, h, n, m = weights.shape
    _, kv, _, d = values.shape
    if h % kv != 0:
        raise ValueError("num_kv_heads must divide num_heads")
    w = weights.reshape(b * kv, (h // kv) * n, m)
    return torch.bmm(w, values.reshape(b * kv, m, d)).reshape(b, h, n, d)


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, num_kv_heads):
        super().__init__()
        if d_out % num_heads != 0 or num_heads % num_kv_heads != 0:
            raise ValueError("num_heads must divide d_out, and num_kv_heads num_heads")
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.context_length = context_length
        d_kv = num_kv_heads * (d_out // num_heads)
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_kv, bias=False)
        self.W_value = nn.Linear(d_in, d_kv, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("too many tokens")
        q = self.W_query(x).reshape(b, n, self.num_heads, -1).transpose(1, 2)
        k = self.W_key(x).reshape(b, n, self.num_kv_heads, -1).transpose(1, 2)
        v = self.W_value(x).reshape(b, n, self.num_kv_heads, -1).transpose(1, 2)
        scores = grouped_scores(q, k)
        scores = scores + torch.full_like(scores[0, 0].detach(), -torch.inf).triu_(1)
        weights = self.dropout(scores.softmax(dim=-1))
        return self.out_proj(grouped_context(weights, v).transpose(1, 2).reshape(b, n, -1))
