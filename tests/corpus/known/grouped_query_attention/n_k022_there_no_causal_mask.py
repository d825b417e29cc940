# mistake: never_masked
import torch
from torch import Tensor, nn


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    b, nh, nq, dh = queries.size()
    nkv, nk = keys.size(1), keys.size(2)
    if nh % nkv != 0:
        raise ValueError("num_kv_heads must divide num_heads")
    q = queries.reshape(b * nkv, nh // nkv * nq, dh)
    k = keys.reshape(b * nkv, nk, dh)
    return torch.bmm(q, k.transpose(1, 2)).reshape(b, nh, nq, nk) / dh**0.5


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    b, nh, nq, nk = weights.size()
    nkv, dv = values.size(1), values.size(3)
    if nh % nkv != 0:
        raise ValueError("num_kv_heads must divide num_heads")
    w = weights.reshape(b * nkv, nh // nkv * nq, nk)
    v = values.reshape(b * nkv, nk, dv)
    return torch.bmm(w, v).reshape(b, nh, nq, dv)


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float,
                 num_heads: int, num_kv_heads: int) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("num_heads must divide d_out")
        if num_heads % num_kv_heads != 0:
            raise ValueError("num_kv_heads must divide num_heads")
        self.context_length = context_length
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, num_heads * self.head_dim, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.head_dim, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.head_dim, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        b, t, _ = x.shape
        if t > self.context_length:
            raise ValueError("sequence too long")
        q = self.W_query(x).view(b, t, self.num_heads, self.head_dim).transpose(1, 2)
        k = self.W_key(x).view(b, t, self.num_kv_heads, self.head_dim).transpose(1, 2)
        v = self.W_value(x).view(b, t, self.num_kv_heads, self.head_dim).transpose(1, 2)
        attn = torch.softmax(grouped_scores(q, k), dim=-1)
        attn = self.dropout(attn)
        out = grouped_context(attn, v)                       # b, h, t, d
        out = out.transpose(1, 2).contiguous().view(b, t, -1)
        return self.out_proj(out)
