import torch
from torch import Tensor, nn


def _group(per_head: Tensor, num_kv_heads: int) -> Tensor:
    """(batch, num_heads, ...) -> (batch, num_kv_heads, group, ...)."""
    num_heads = per_head.shape[1]
    if num_heads % num_kv_heads:
        raise ValueError(f"{num_kv_heads} heads of keys do not divide {num_heads} heads")
    return per_head.unflatten(1, (num_kv_heads, num_heads // num_kv_heads))


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    q = _group(queries * queries.shape[-1] ** -0.5, keys.shape[1])
    return torch.einsum("bjgqd,bjkd->bjgqk", q, keys).flatten(1, 2)


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    w = _group(weights, values.shape[1])
    return torch.einsum("bjgqk,bjkv->bjgqv", w, values).flatten(1, 2)


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
            raise ValueError(f"d_out {d_out}, heads {num_heads} and {num_kv_heads} do not fit")
        self.context_length = context_length
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError(f"{n} tokens are more than {self.context_length}")
        q, k, v = (
            W(x).unflatten(-1, (-1, self.d_head)).movedim(-2, 1)
            for W in (self.W_query, self.W_key, self.W_value)
        )
        place = torch.arange(n, device=x.device)
        scores = grouped_scores(q, k).masked_fill(place > place[:, None], -torch.inf)
        context = grouped_context(self.dropout(scores.softmax(-1)), v)
        return self.out_proj(context.movedim(1, -2).flatten(-2))
