# promise: With a single head of keys and values, @ expands it, and torch copies keys and values to num_heads heads.
import torch
from torch import Tensor, nn


def _product(many: Tensor, few: Tensor) -> Tensor:
    n_few = few.shape[1]
    if many.shape[1] % n_few:
        raise ValueError(f"{n_few} does not divide {many.shape[1]}")
    if n_few == 1:  # multi-query attention: broadcasting does it
        return many @ few
    folded = many.reshape(many.shape[0], n_few, -1, many.shape[-1]) @ few
    return folded.reshape(*many.shape[:-1], few.shape[-1])


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    return _product(queries, keys.mT) / queries.shape[-1] ** 0.5


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    return _product(weights, values)


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
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"{n} tokens > {self.context_length}")
        q = self.W_query(x).view(b, n, self.num_heads, -1).transpose(1, 2)
        k = self.W_key(x).view(b, n, self.num_kv_heads, -1).transpose(1, 2)
        v = self.W_value(x).view(b, n, self.num_kv_heads, -1).transpose(1, 2)
        later = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        weights = grouped_scores(q, k).masked_fill(later, float("-inf")).softmax(-1)
        y = grouped_context(self.dropout(weights), v).transpose(1, 2)
        return self.out_proj(y.reshape(b, n, -1))
