# mistake: renormalised_after_softmax
# the mask comes after the softmax and the rows are divided by their sums again, so a large later score swallows the earlier ones

import torch
from torch import Tensor, nn


def check_groups(num_heads: int, num_kv_heads: int) -> None:
    if num_heads % num_kv_heads:
        raise ValueError(f"{num_heads} heads, {num_kv_heads} of keys and values")


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    B, H, Nq, D = queries.shape
    G, Nk = keys.shape[1:3]
    check_groups(H, G)
    rows = queries.reshape(B * G, H // G * Nq, D)
    table = torch.bmm(rows, keys.reshape(B * G, Nk, D).transpose(1, 2))
    return (table / D**0.5).view(B, H, Nq, Nk)


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    B, H, Nq, Nk = weights.shape
    G, Dv = values.shape[1], values.shape[-1]
    check_groups(H, G)
    rows = weights.reshape(B * G, H // G * Nq, Nk)
    return torch.bmm(rows, values.reshape(B * G, Nk, Dv)).view(B, H, Nq, Dv)


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
        check_groups(d_out, num_heads)
        check_groups(num_heads, num_kv_heads)
        self.H, self.G, self.D = num_heads, num_kv_heads, d_out // num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, self.H * self.D, bias=False)
        self.W_key = nn.Linear(d_in, self.G * self.D, bias=False)
        self.W_value = nn.Linear(d_in, self.G * self.D, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        B, N, _ = x.shape
        if N > self.context_length:
            raise ValueError("sequence too long")
        q = self.W_query(x).view(B, N, self.H, self.D).transpose(1, 2)
        k = self.W_key(x).view(B, N, self.G, self.D).transpose(1, 2)
        v = self.W_value(x).view(B, N, self.G, self.D).transpose(1, 2)
        weights = torch.softmax(grouped_scores(q, k), dim=-1).tril()
        weights = weights / weights.sum(dim=-1, keepdim=True)
        context = grouped_context(self.dropout(weights), v)
        return self.out_proj(context.transpose(1, 2).reshape(B, N, -1))
