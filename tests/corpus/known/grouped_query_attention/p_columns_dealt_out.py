# mistake: columns_dealt_out
import torch
from torch import Tensor, nn


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    if queries.shape[1] % keys.shape[1]:
        raise ValueError("bad number of heads")
    q = queries.unflatten(1, (keys.shape[1], -1))
    s = torch.einsum("bgrnd,bgmd->bgrnm", q, keys)
    return s.flatten(1, 2) / queries.shape[-1] ** 0.5


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    if weights.shape[1] % values.shape[1]:
        raise ValueError("bad number of heads")
    w = weights.unflatten(1, (values.shape[1], -1))
    return torch.einsum("bgrnm,bgmd->bgrnd", w, values).flatten(1, 2)


class GroupedQueryAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        num_kv_heads: int,
    ) -> None:
        super().__init__()
        if d_out % num_heads or num_heads % num_kv_heads:
            raise ValueError("the numbers of heads do not fit")
        self.context_length = context_length
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.context_length:
            raise ValueError("more tokens than context_length")
        q = self.W_query(x).unflatten(2, (self.num_heads, self.d_head)).permute(0, 2, 1, 3)
        k = self.W_key(x).unflatten(2, (self.d_head, self.num_kv_heads)).permute(0, 3, 1, 2)
        v = self.W_value(x).unflatten(2, (self.d_head, self.num_kv_heads)).permute(0, 3, 1, 2)
        s = grouped_scores(q, k)
        s = s + torch.full_like(s[0, 0], float("-inf")).triu(1)
        e = (s - s.max(-1, keepdim=True).values).exp()
        w = self.dropout(e / e.sum(-1, keepdim=True))
        return self.out_proj(grouped_context(w, v).permute(0, 2, 1, 3).flatten(2))
