# mistake: copied_to_all_heads
import torch
from torch import Tensor, nn


def _expand(shared: Tensor, num_heads: int) -> Tensor:
    num_kv_heads = shared.shape[1]
    if num_heads % num_kv_heads != 0:
        raise ValueError(f"{num_kv_heads} does not divide {num_heads}")
    return shared.repeat_interleave(num_heads // num_kv_heads, dim=1)


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Return the scores of every query head with the keys of its group."""
    keys = _expand(keys, queries.shape[1])
    return queries @ keys.transpose(2, 3) / queries.shape[-1] ** 0.5


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    """Return the values of every head's group, added up with the weights of the head."""
    return weights @ _expand(values, weights.shape[1])


class GroupedQueryAttention(nn.Module):
    """Causal attention with num_heads heads of queries and num_kv_heads heads of keys and values."""

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
            raise ValueError("d_out must be divisible by num_heads")
        if num_heads % num_kv_heads != 0:
            raise ValueError("num_heads must be divisible by num_kv_heads")
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "mask", torch.triu(torch.ones(context_length, context_length), diagonal=1)
        )

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.mask.shape[0]:
            raise ValueError("too many tokens for this module")
        q = self.W_query(x).view(b, n, self.num_heads, self.d_head).transpose(1, 2)
        k = self.W_key(x).view(b, n, self.num_kv_heads, self.d_head).transpose(1, 2)
        v = self.W_value(x).view(b, n, self.num_kv_heads, self.d_head).transpose(1, 2)
        scores = grouped_scores(q, k).masked_fill(self.mask.bool()[:n, :n], -torch.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        merged = grouped_context(weights, v).transpose(1, 2).contiguous().view(b, n, -1)
        return self.out_proj(merged)
