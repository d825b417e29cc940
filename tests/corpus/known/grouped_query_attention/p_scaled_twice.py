# mistake: scaled_twice
import torch
from torch import Tensor, nn


def _per_group(x: Tensor, n_groups: int) -> Tensor:
    size, rest = divmod(x.size(1), n_groups)
    if rest:
        raise ValueError(f"{n_groups} groups of {x.size(1)} heads")
    return x.unflatten(1, (n_groups, size)).flatten(2, 3)


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    products = _per_group(queries, keys.size(1)).matmul(keys.mT)
    products = products.unflatten(2, (-1, queries.size(2))).flatten(1, 2)
    return products * keys.size(3) ** -0.5


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    sums = _per_group(weights, values.size(1)).matmul(values)
    return sums.unflatten(2, (-1, weights.size(2))).flatten(1, 2)


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
        if x.size(1) > self.context_length:
            raise ValueError(f"at most {self.context_length} tokens")

        def heads(layer: nn.Linear) -> Tensor:
            return layer(x).unflatten(2, (-1, self.d_head)).transpose(1, 2)

        scores = grouped_scores(heads(self.W_query), heads(self.W_key))
        row = torch.arange(x.size(1), device=x.device)
        scores = scores.masked_fill(row.unsqueeze(0) > row.unsqueeze(1), -torch.inf)
        weights = (scores / self.d_head**0.5).softmax(-1)
        out = grouped_context(self.dropout(weights), heads(self.W_value))
        return self.out_proj(out.transpose(1, 2).flatten(2))
