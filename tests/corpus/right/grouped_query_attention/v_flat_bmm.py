# right: batch and key heads are flattened into one axis, all queries of a group are rows of one bmm
import torch
from torch import Tensor, nn
from torch.nn import functional as F


def _groups(rows: Tensor, shared: Tensor) -> Tensor:
    batch, num_heads, n, d = rows.shape
    num_kv_heads = shared.shape[1]
    if num_heads % num_kv_heads:
        raise ValueError(f"{num_kv_heads} does not divide {num_heads}")
    return rows.reshape(batch * num_kv_heads, num_heads // num_kv_heads * n, d)


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    rows = _groups(queries, keys) * queries.shape[-1] ** -0.5
    table = torch.bmm(rows, keys.flatten(0, 1).mT)
    return table.reshape(*queries.shape[:3], keys.shape[2])


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    mixed = torch.bmm(_groups(weights, values), values.flatten(0, 1))
    return mixed.reshape(*weights.shape[:3], values.shape[3])


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float,
                 num_heads: int, num_kv_heads: int) -> None:
        super().__init__()
        if d_out % num_heads or num_heads % num_kv_heads:
            raise ValueError("heads do not divide")
        self.d_head = d_out // num_heads
        self.limit, self.rate = context_length, dropout
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.limit:
            raise ValueError(f"{n} tokens, at most {self.limit}")
        q, k, v = (
            layer(x).unflatten(2, (-1, self.d_head)).transpose(1, 2)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        place = torch.arange(n, device=x.device)
        allowed = place[:, None] >= place
        scores = torch.where(allowed, grouped_scores(q, k), float("-inf"))
        weights = F.dropout(scores.softmax(-1), self.rate, self.training)
        return self.out_proj(grouped_context(weights, v).transpose(1, 2).flatten(2))

