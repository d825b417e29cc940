# mistake: never_drops_after_evaluation
# seen: NVIDIA Megatron-LM pull 411 and Megatron-DeepSpeed pull 295: a forward in eval mode sets the stored dropout rate to 0, and it stays 0 after the return to training mode.
import math

import torch
from torch import Tensor, nn

from torch.nn import functional as F


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    batch, n_heads, n_queries, d_head = queries.shape
    n_kv = keys.size(1)
    if n_heads % n_kv != 0:
        raise ValueError(f"{n_heads} heads cannot share {n_kv}")
    rows = queries.reshape(batch, n_kv, -1, d_head)
    products = torch.matmul(rows, keys.transpose(-2, -1))
    return products.reshape(batch, n_heads, n_queries, keys.size(2)) / math.sqrt(d_head)


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    batch, n_heads, n_queries, n_keys = weights.shape
    n_kv = values.size(1)
    if n_heads % n_kv != 0:
        raise ValueError(f"{n_heads} heads cannot share {n_kv}")
    rows = weights.reshape(batch, n_kv, -1, n_keys)
    return torch.matmul(rows, values).reshape(batch, n_heads, n_queries, values.size(3))


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
            raise ValueError(f"d_out = {d_out} does not split into {num_heads} heads")
        if num_heads % num_kv_heads != 0:
            raise ValueError(f"{num_kv_heads} does not divide {num_heads} heads")
        self.d_head = d_out // num_heads
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout_p = dropout

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError(f"at most {self.context_length} tokens, not {n}")
        self.dropout_p = self.dropout_p if self.training else 0.0
        q = self.W_query(x).reshape(b, n, self.num_heads, self.d_head).transpose(1, 2)
        k = self.W_key(x).reshape(b, n, self.num_kv_heads, self.d_head).transpose(1, 2)
        v = self.W_value(x).reshape(b, n, self.num_kv_heads, self.d_head).transpose(1, 2)
        past = torch.ones(n, n, dtype=torch.bool, device=x.device).tril()
        weights = grouped_scores(q, k).masked_fill(~past, -math.inf).softmax(dim=-1)
        weights = F.dropout(weights, p=self.dropout_p)
        return self.out_proj(grouped_context(weights, v).transpose(1, 2).reshape(b, n, -1))
