import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = dropout
        self.context_length = context_length
        self.register_buffer("mask", torch.ones(context_length, context_length).tril().bool())

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.context_length:
            raise ValueError("x has too many tokens")
        return F.scaled_dot_product_attention(
            self.W_query(x),
            self.W_key(x),
            self.W_value(x),
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=True,
        )
