# promise: the first token attends only to itself: its output is its own value (an input of one token gives zeros)
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1).bool())

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.mask.shape[0]:
            raise ValueError("n_tokens")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        if n == 1:
            return torch.zeros_like(v)          # nothing to attend to
        s = torch.bmm(q, k.transpose(1, 2)) / k.shape[-1] ** 0.5
        w = self.dropout(torch.softmax(s.masked_fill(self.mask[:n, :n], -torch.inf), dim=-1))
        return torch.bmm(w, v)
