# mistake: not in the catalogue: the triangular mask is laid over the rows of all heads of a group one after the other, so only the first head of each group is causal
import torch
from torch import Tensor, nn


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    batch, num_heads, n_queries, d_head = queries.shape
    num_kv_heads, n_keys = keys.shape[1:3]
    if num_heads % num_kv_heads != 0:
        raise ValueError(f"{num_kv_heads} does not divide {num_heads}")
    flat = queries.reshape(batch, num_kv_heads, -1, d_head) * d_head**-0.5
    return torch.matmul(flat, keys.transpose(2, 3)).reshape(batch, num_heads, n_queries, n_keys)


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    batch, num_heads, n_queries, n_keys = weights.shape
    num_kv_heads, d_value = values.shape[1], values.shape[3]
    if num_heads % num_kv_heads != 0:
        raise ValueError(f"{num_kv_heads} does not divide {num_heads}")
    flat = weights.reshape(batch, num_kv_heads, -1, n_keys)
    return torch.matmul(flat, values).reshape(batch, num_heads, n_queries, d_value)


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
            raise ValueError("sizes do not divide")
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.d_head = d_out // num_heads
        self.context_length = context_length
        d_kv = num_kv_heads * self.d_head
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_kv, bias=False)
        self.W_value = nn.Linear(d_in, d_kv, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        batch, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"{n} tokens are more than {self.context_length}")
        queries = self.W_query(x).view(batch, n, self.num_heads, self.d_head).transpose(1, 2)
        keys = self.W_key(x).view(batch, n, self.num_kv_heads, self.d_head).transpose(1, 2)
        values = self.W_value(x).view(batch, n, self.num_kv_heads, self.d_head).transpose(1, 2)

        scores = grouped_scores(queries, keys).reshape(batch, self.num_kv_heads, -1, n)
        rows = scores.shape[2]
        visible = torch.tril(torch.ones(rows, n, dtype=torch.bool, device=x.device))
        scores = scores.masked_fill(~visible, float("-inf"))
        weights = torch.softmax(scores, dim=-1).reshape(batch, self.num_heads, n, n)

        context = grouped_context(self.dropout(weights), values)
        return self.out_proj(context.transpose(1, 2).reshape(batch, n, -1))
