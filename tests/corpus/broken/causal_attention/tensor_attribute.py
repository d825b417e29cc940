# promise: the mask moves with the module to another device (it is a plain attribute)
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
        self.dropout = nn.Dropout(dropout)
        pos = torch.arange(context_length)
        self.hidden = pos[None, :] > pos[:, None]

    def forward(self, x):
        length = x.size(1)
        if length > self.hidden.size(0):
            raise ValueError(f"at most {self.hidden.size(0)} tokens")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = torch.bmm(q, k.permute(0, 2, 1)) * k.size(-1) ** -0.5
        scores = scores.masked_fill(self.hidden[:length, :length], float("-inf"))
        weights = self.dropout(softmax(scores))
        return torch.bmm(weights, v)
