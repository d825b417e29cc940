# mistake: whole_heads_dropped
import torch
from torch import Tensor, nn


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    b, h, n, d = queries.shape
    if h % keys.shape[1]:
        raise ValueError("heads and groups do not fit")
    flat = queries.reshape(b, keys.shape[1], -1, d) / d**0.5
    return (flat @ keys.mT).reshape(b, h, n, keys.shape[2])


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    b, h, n, m = weights.shape
    if h % values.shape[1]:
        raise ValueError("heads and groups do not fit")
    flat = weights.reshape(b, values.shape[1], -1, m)
    return (flat @ values).reshape(b, h, n, values.shape[3])


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
            raise ValueError("sizes")
        self.d_head = d_out // num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout2d(dropout)

    def split(self, t: Tensor) -> Tensor:
        return torch.stack(t.split(self.d_head, dim=-1), dim=1)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError("x is too long")
        scores = grouped_scores(self.split(self.W_query(x)), self.split(self.W_key(x)))
        future = torch.ones(n, n, device=x.device).triu(1) == 1
        weights = self.dropout(scores.masked_fill(future, -torch.inf).softmax(-1))
        context = grouped_context(weights, self.split(self.W_value(x)))
        return self.out_proj(torch.cat(context.unbind(1), dim=-1))
