# mistake: mask_of_the_last_tokens
import torch
import torch.nn as nn
from torch import Tensor


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.attn_drop = nn.Dropout(dropout)
        self.register_buffer("tril", torch.tril(torch.ones(context_length, context_length)))

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        if T > len(self.tril):
            raise ValueError("T > context_length")
        k = self.W_key(x)
        q = self.W_query(x)
        wei = q @ k.transpose(-2, -1) * self.d_out ** -0.5
        wei = wei.masked_fill(self.tril[-T:, :T] == 0, float("-inf"))
        wei = nn.functional.softmax(wei, dim=-1)
        wei = self.attn_drop(wei)
        return wei @ self.W_value(x)
