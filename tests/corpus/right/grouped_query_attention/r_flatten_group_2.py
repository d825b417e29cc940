import torch
from torch import Tensor, nn


def _per_kv(t: Tensor, kv: int) -> Tensor:
    """(b, heads, n, d) -> (b, kv, group * n, d): the rows of a group under one another."""
    heads = t.shape[1]
    if heads % kv:
        raise ValueError(f"{kv} heads of keys and values do not divide {heads}")
    return t.unflatten(1, (kv, heads // kv)).flatten(2, 3)


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    rows = _per_kv(queries * queries.shape[-1] ** -0.5, keys.shape[1])
    return (rows @ keys.mT).reshape(*queries.shape[:3], keys.shape[2])


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    rows = _per_kv(weights, values.shape[1])
    return (rows @ values).reshape(*weights.shape[:3], values.shape[3])


class GroupedQueryAttention(nn.Module):
    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, num_kv_heads: int
    ) -> None:
        super().__init__()
        d_head, rest = divmod(d_out, num_heads)
        if rest or num_heads % num_kv_heads:
            raise ValueError("num_heads must divide d_out, num_kv_heads must divide num_heads")
        self.d_head = d_head
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)
        self.register_buffer("hidden", torch.ones(context_length, context_length, dtype=torch.bool).triu(1))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > len(self.hidden):
            raise ValueError(f"{n} tokens, at most {len(self.hidden)} are possible")
        q, k, v = (
            w(x).unflatten(-1, (-1, self.d_head)).transpose(1, 2) for w in (self.W_query, self.W_key, self.W_value)
        )
        scores = torch.where(self.hidden[:n, :n], float("-inf"), grouped_scores(q, k))
        heads = grouped_context(self.drop(scores.softmax(dim=-1)), v)
        return self.out_proj(heads.transpose(1, 2).flatten(-2))
