# mistake: interleaved_heads
# the columns are dealt out to the heads in turn (head i gets columns i, i + num_heads, ...) instead of in blocks of d_head
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
        causal: bool = True,
    ) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out / num_heads is no whole number")
        self.heads = num_heads
        self.context_length = context_length
        self.causal = causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out, bias=True)
        self.attn_drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        B, N, _ = x.shape
        if N > self.context_length:
            raise ValueError("too long")
        # (B, N, d_head, heads)
        q = self.W_query(x).reshape(B, N, -1, self.heads)
        k = self.W_key(x).reshape(B, N, -1, self.heads)
        v = self.W_value(x).reshape(B, N, -1, self.heads)
        s = torch.einsum("bidh,bjdh->bhij", q, k) / q.shape[2] ** 0.5
        if self.causal:
            allowed = torch.ones(N, N, dtype=torch.bool, device=x.device).tril()
            s = s.masked_fill(allowed.logical_not(), -torch.inf)
        w = self.attn_drop(s.softmax(-1))
        y = torch.einsum("bhij,bjdh->bidh", w, v)
        return self.out_proj(y.reshape(B, N, -1))
