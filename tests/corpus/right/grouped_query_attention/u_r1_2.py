# right: five-axis einsum over (batch, kv head, group, query, key), mask by positions
import torch
from torch import Tensor, nn
from torch.nn import functional as F


def _in_groups(x: Tensor, num_kv_heads: int) -> Tensor:
    batch, num_heads, rows, columns = x.shape
    if num_heads % num_kv_heads:
        raise ValueError(f"{num_kv_heads} shared heads for {num_heads} heads")
    return x.unflatten(1, (num_kv_heads, num_heads // num_kv_heads))


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    grouped = _in_groups(queries, keys.size(1))
    scores = torch.einsum("bjgqd,bjkd->bjgqk", grouped, keys)
    return scores.flatten(1, 2) / queries.size(-1) ** 0.5


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    grouped = _in_groups(weights, values.size(1))
    return torch.einsum("bjgqk,bjkv->bjgqv", grouped, values).flatten(1, 2)


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
        if d_out % num_heads != 0:
            raise ValueError(f"{num_heads} heads do not divide d_out = {d_out}")
        if num_heads % num_kv_heads != 0:
            raise ValueError(f"{num_kv_heads} does not divide {num_heads}")
        self.context_length = context_length
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.rate = dropout

    def forward(self, x: Tensor) -> Tensor:
        n = x.size(1)
        if n > self.context_length:
            raise ValueError(f"{n} tokens, but context_length is {self.context_length}")
        queries, keys, values = (
            layer(x).unflatten(-1, (-1, self.d_head)).movedim(2, 1)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        place = torch.arange(n, device=x.device)
        visible = place[:, None] >= place
        scores = torch.where(visible, grouped_scores(queries, keys), -torch.inf)
        weights = F.dropout(scores.softmax(dim=-1), self.rate, self.training)
        return self.out_proj(grouped_context(weights, values).movedim(1, 2).flatten(2))
