# mistake: merged_without_transpose
# heads and tokens are not exchanged before the final reshape
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"{num_heads} heads do not divide {d_out}")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.context_length = context_length
        self.causal = causal
        if causal:
            self.register_buffer("bias", torch.full((context_length, context_length), float("-inf")).triu(1))

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.context_length:
            raise ValueError("sequence too long")
        q, k, v = (
            torch.stack(layer(x).chunk(self.num_heads, dim=-1), dim=1)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        s = torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5
        if self.causal:
            s = s + self.bias[: x.shape[1], : x.shape[1]]
        o = torch.einsum("bhij,bhjd->bhid", self.dropout(s.softmax(-1)), v)
        return self.out_proj(o.flatten(1).unflatten(1, (x.shape[1], -1)))
