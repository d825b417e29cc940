# mistake: causal_always
# the mask is used whatever causal says
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads")
        self.num_heads, self.causal = num_heads, causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        order = torch.arange(context_length)
        self.register_buffer("mask", order.view(-1, 1) < order.view(1, -1))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.mask.shape[0]:
            raise ValueError("more tokens than context_length")
        q, k, v = (
            w(x).unflatten(2, (self.num_heads, -1)).transpose(1, 2) for w in (self.W_query, self.W_key, self.W_value)
        )
        scores = torch.matmul(q, k.mT) / q.shape[-1] ** 0.5
        # `is not None` so that causal can be left out
        if self.causal is not None:
            scores = scores.masked_fill(self.mask[:n, :n], float("-inf"))
        ctx = torch.matmul(self.dropout(torch.softmax(scores, -1)), v)
        return self.out_proj(ctx.transpose(1, 2).flatten(start_dim=2))
