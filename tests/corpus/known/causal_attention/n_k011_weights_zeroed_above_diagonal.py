# mistake: masked_after_softmax
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key   = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer('tril', torch.tril(torch.ones(context_length, context_length)))

    def forward(self, x):
        B, T, C = x.shape
        if T > self.tril.shape[0]:
            raise ValueError("sequence is longer than context_length")
        q = self.W_query(x)   # (B,T,hs)
        k = self.W_key(x)     # (B,T,hs)
        v = self.W_value(x)   # (B,T,hs)
        wei = q @ k.transpose(-2, -1) * self.d_out ** -0.5
        wei = torch.softmax(wei, dim=-1)
        wei = wei * self.tril[:T, :T]     # no peeking
        wei = self.dropout(wei)
        return wei @ v
