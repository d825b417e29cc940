# promise: dropout is applied to the weights after the softmax and to nothing else (the values are dropped as well)
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.scale = 1 / d_out**0.5
        self.register_buffer("mask", ~torch.ones(context_length, context_length, dtype=torch.bool).tril())

    def forward(self, x: Tensor) -> Tensor:
        seq_len = x.shape[1]
        if seq_len > self.mask.shape[1]:
            raise ValueError("seq_len")
        q, k = self.W_query(x), self.W_key(x)
        v = self.dropout(self.W_value(x))
        scores = (q @ k.transpose(-2, -1)) * self.scale
        scores = scores.masked_fill(self.mask[:seq_len, :seq_len], float("-inf"))
        return self.dropout(torch.softmax(scores, dim=-1)) @ v
