# mistake: dropout_never_used + tensor_left_behind
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
        self.att_drop = nn.Dropout(dropout)
        idx = torch.arange(context_length)
        self.later = idx.unsqueeze(0) > idx.unsqueeze(1)

    def forward(self, x):
        T = x.size(1)
        if T > self.later.size(0):
            raise ValueError(f"at most {self.later.size(0)} tokens")
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        att = torch.bmm(query, key.permute(0, 2, 1)) * key.size(-1) ** -0.5
        att = att.masked_fill(self.later[:T, :T], float("-inf"))
        att_w = softmax(att)
        return torch.bmm(att_w, value)
