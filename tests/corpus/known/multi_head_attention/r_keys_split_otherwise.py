# mistake: heads_of_different_columns
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int,
                 qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        if d_out % num_heads:
            raise ValueError("bad num_heads")
        self.n, self.d = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.causal = causal
        self.length = context_length

    def forward(self, x: Tensor) -> Tensor:
        B, L, _ = x.shape
        if L > self.length:
            raise ValueError("too long")
        Q = self.W_query(x).reshape(B, L, self.n, self.d).permute(0, 2, 1, 3)
        # keys straight into the transposed form (B, n, d, L)
        Kt = self.W_key(x).reshape(B, L, self.d, self.n).permute(0, 3, 2, 1)
        V = self.W_value(x).reshape(B, L, self.n, self.d).permute(0, 2, 1, 3)
        A = (Q @ Kt) / self.d**0.5
        if self.causal:
            A = A.masked_fill(torch.ones(L, L, dtype=torch.bool, device=x.device).triu(1), float("-inf"))
        A = self.dropout(A.softmax(-1))
        return self.out_proj((A @ V).permute(0, 2, 1, 3).reshape(B, L, self.n * self.d))
