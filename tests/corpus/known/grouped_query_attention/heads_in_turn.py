# mistake: tiled_groups
# head i uses the keys and values i % num_kv_heads, so the groups are not neighbouring heads
import torch
from torch import Tensor, nn


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    b, h, n, d = queries.shape
    m = keys.shape[1]
    if h % m != 0:
        raise ValueError("heads cannot be shared evenly")
    q = queries.reshape(b, h // m, m, n, d).transpose(1, 2).reshape(b, m, -1, d)
    s = (q @ keys.mT).reshape(b, m, h // m, n, -1).transpose(1, 2)
    return s.reshape(b, h, n, -1) / d**0.5


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    b, h, n, k = weights.shape
    m = values.shape[1]
    if h % m != 0:
        raise ValueError("heads cannot be shared evenly")
    w = weights.reshape(b, h // m, m, n, k).transpose(1, 2).reshape(b, m, -1, k)
    c = (w @ values).reshape(b, m, h // m, n, -1).transpose(1, 2)
    return c.reshape(b, h, n, -1)


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, num_kv_heads):
        super().__init__()
        if d_out % num_heads != 0 or num_heads % num_kv_heads != 0:
            raise ValueError("d_out, num_heads and num_kv_heads do not fit")
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.context_length = context_length
        d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_head * num_kv_heads, bias=False)
        self.W_value = nn.Linear(d_in, d_head * num_kv_heads, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("n_tokens > context_length")
        q = self.W_query(x).reshape(b, n, self.num_heads, -1).transpose(1, 2)
        k = self.W_key(x).reshape(b, n, self.num_kv_heads, -1).transpose(1, 2)
        v = self.W_value(x).reshape(b, n, self.num_kv_heads, -1).transpose(1, 2)
        s = grouped_scores(q, k)
        s = s.masked_fill(torch.ones(n, n, device=x.device).triu(1) == 1, float("-inf"))
        c = grouped_context(self.dropout(s.softmax(-1)), v)
        return self.out_proj(c.transpose(1, 2).reshape(b, n, -1))
