import math

import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    """Adds a float mask of 0 and -inf, kept out of the state_dict."""

    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)
        self.p = dropout
        self.inv_scale = 1.0 / math.sqrt(d_out)
        bias = torch.full((context_length, context_length), float("-inf")).triu(1)
        self.register_buffer("attn_bias", bias, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        T = x.size(-2)
        if T > self.attn_bias.size(0):
            raise ValueError(f"got {T} tokens, context is {self.attn_bias.size(0)}")
        q, k, v = (w(x) for w in (self.W_query, self.W_key, self.W_value))
        att = torch.bmm(q * self.inv_scale, k.transpose(1, 2)) + self.attn_bias[:T, :T]
        att = nn.functional.dropout(att.softmax(-1), p=self.p, training=self.training)
        return torch.bmm(att, v)
