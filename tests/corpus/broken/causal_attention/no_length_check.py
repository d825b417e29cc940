# promise: more tokens than context_length are refused (a mask of one token broadcasts)
import torch
from torch import nn


def softmax(z):
    z = torch.exp(z - z.max(dim=-1, keepdim=True).values)
    return z / z.sum(dim=-1, keepdim=True)


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)
        self.drop = nn.Dropout(dropout)
        pos = torch.arange(context_length)
        self.register_buffer("future", pos[None, :] > pos[:, None])

    def forward(self, x):
        n = x.size(1)
        Q, K, V = self.W_query(x), self.W_key(x), self.W_value(x)
        S = torch.bmm(Q, K.permute(0, 2, 1)) * K.size(-1) ** -0.5
        S = S.masked_fill(self.future[:n, :n], float("-inf"))
        P = self.drop(softmax(S))
        return torch.bmm(P, V)
