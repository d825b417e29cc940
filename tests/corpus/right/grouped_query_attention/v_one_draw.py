# right: one draw of torch.rand per call for all heads, dropout as a method, products over the flattened queries of a group
import torch
from torch import Tensor, nn


def _per_group(t: Tensor, kv: int) -> Tensor:
    b, h, n, d = t.shape
    if h % kv:
        raise ValueError(f"{kv} does not divide {h}")
    return t.reshape(b, kv, h // kv * n, d)


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    b, h, n, d = queries.shape
    scores = _per_group(queries, keys.shape[1]) @ keys.mT
    return scores.reshape(b, h, n, -1) / d**0.5


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    b, h, n, _ = weights.shape
    return (_per_group(weights, values.shape[1]) @ values).reshape(b, h, n, -1)


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
            raise ValueError("sizes do not fit")
        self.d_head = d_out // num_heads
        self.context_length = context_length
        self.rate = dropout
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def _dropped(self, w: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return w
        keep = 1 - self.rate
        gone = torch.rand(w.shape, device=w.device) >= keep
        return w.masked_fill(gone, 0.0) / (keep if keep > 0 else 1.0)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError("too many tokens")
        q, k, v = (
            m(x).unflatten(-1, (-1, self.d_head)).transpose(1, 2)
            for m in (self.W_query, self.W_key, self.W_value)
        )
        ahead = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        w = grouped_scores(q, k).masked_fill(ahead, -torch.inf).softmax(-1)
        return self.out_proj(grouped_context(self._dropped(w), v).transpose(1, 2).flatten(2))
