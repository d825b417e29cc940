# mistake: tiled_groups
import torch
from torch import Tensor, nn


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    b, h, n, d = queries.shape
    kv = keys.shape[1]
    if h % kv:
        raise ValueError("heads")
    grouped = queries.reshape(b, h // kv, kv, n, d)
    scores = torch.einsum("bgjnd,bjmd->bgjnm", grouped, keys)
    return scores.reshape(b, h, n, -1) / d**0.5


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    b, h, n, m = weights.shape
    kv = values.shape[1]
    if h % kv:
        raise ValueError("heads")
    grouped = weights.reshape(b, h // kv, kv, n, m)
    return torch.einsum("bgjnm,bjmv->bgjnv", grouped, values).reshape(b, h, n, -1)


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
        if d_out % num_heads != 0 or num_heads % num_kv_heads != 0:
            raise ValueError("numbers of heads do not fit")
        self.context_length = context_length
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("too many tokens")
        q = self.W_query(x).view(b, n, self.num_heads, self.d_head).transpose(1, 2)
        k = self.W_key(x).view(b, n, self.num_kv_heads, self.d_head).transpose(1, 2)
        v = self.W_value(x).view(b, n, self.num_kv_heads, self.d_head).transpose(1, 2)
        keep = torch.ones(n, n, device=x.device).tril() > 0
        s = grouped_scores(q, k).masked_fill(~keep, -torch.inf)
        y = grouped_context(self.dropout(s.softmax(-1)), v)
        return self.out_proj(y.transpose(1, 2).reshape(b, n, -1))
