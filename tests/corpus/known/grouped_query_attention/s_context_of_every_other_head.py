# mistake: tiled_groups
import torch
from torch import Tensor, nn


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    if queries.size(1) % keys.size(1):
        raise ValueError("heads cannot be grouped")
    q = queries.unflatten(1, (keys.size(1), -1)).flatten(2, 3)
    s = torch.bmm(q.flatten(0, 1), keys.flatten(0, 1).transpose(1, 2)) / keys.size(-1) ** 0.5
    return s.reshape(queries.size(0), queries.size(1), queries.size(2), keys.size(2))


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    batch, heads, n_q, n_k = weights.shape
    kv = values.size(1)
    if heads % kv:
        raise ValueError("heads cannot be grouped")
    group = heads // kv
    w = weights.reshape(batch, group, kv, n_q, n_k).transpose(1, 2)
    out = w.reshape(batch, kv, group * n_q, n_k) @ values
    out = out.reshape(batch, kv, group, n_q, -1).transpose(1, 2)
    return out.reshape(batch, heads, n_q, -1)


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
        if d_out % num_heads:
            raise ValueError("d_out")
        if num_heads % num_kv_heads:
            raise ValueError("num_kv_heads")
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)
        future = torch.triu(torch.ones(context_length, context_length, dtype=torch.bool), 1)
        self.register_buffer("future", future, persistent=False)

    def heads(self, t: Tensor) -> Tensor:
        return t.reshape(*t.shape[:2], -1, self.d_head).permute(0, 2, 1, 3)

    def forward(self, x: Tensor) -> Tensor:
        n = x.size(1)
        if n > self.future.size(0):
            raise ValueError("x is too long")
        scores = grouped_scores(self.heads(self.W_query(x)), self.heads(self.W_key(x)))
        weights = scores.masked_fill(self.future[:n, :n], -torch.inf).softmax(-1)
        context = grouped_context(self.drop(weights), self.heads(self.W_value(x)))
        return self.out_proj(context.permute(0, 2, 1, 3).flatten(-2))
