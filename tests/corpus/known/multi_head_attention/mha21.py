# mistake: float32_mask + dropout_in_eval
# the scale is a float32 tensor, one number per head, that is never converted + functional dropout without the training flag
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out has to be a multiple of num_heads")
        self.h = num_heads
        self.d_k = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.p = dropout
        self.scale = torch.rsqrt(torch.full((num_heads, 1, 1), float(self.d_k), dtype=torch.float32))
        self.causal = causal
        self.context_length = context_length
        if causal:
            self.register_buffer("mask", torch.tril(torch.ones(context_length, context_length, dtype=torch.bool)))

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("n_tokens > context_length")
        query, key, value = (
            lin(x).view(b, n, self.h, self.d_k).transpose(1, 2) for lin in (self.W_query, self.W_key, self.W_value)
        )
        scores = torch.matmul(query, key.transpose(-2, -1)) * self.scale
        if self.causal:
            scores = scores.masked_fill(self.mask[:n, :n] == False, float("-inf"))  # noqa: E712
        p_attn = F.dropout(scores.softmax(dim=-1), p=self.p)
        out = torch.matmul(p_attn, value)
        return self.out_proj(out.transpose(1, 2).contiguous().view(b, n, self.h * self.d_k))
