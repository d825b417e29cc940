import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention as sdpa


class MultiHeadAttention(nn.Module):
    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True
    ):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out is not divisible by num_heads")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.num_heads = num_heads
        self.causal = causal
        self.dropout = dropout
        self.context_length = context_length
        self.register_buffer("mask", torch.ones(context_length, context_length).tril().bool())

    def forward(self, x: Tensor) -> Tensor:
        batch, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("x has too many tokens")
        q = self.W_query(x).view(batch, n, self.num_heads, -1).transpose(1, 2)
        k = self.W_key(x).view(batch, n, self.num_heads, -1).transpose(1, 2)
        v = self.W_value(x).view(batch, n, self.num_heads, -1).transpose(1, 2)
        p = self.dropout if self.training else 0.0
        y = sdpa(q, k, v, dropout_p=p, is_causal=self.causal)
        return self.out_proj(y.transpose(1, 2).reshape(batch, n, -1))
