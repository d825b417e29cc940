import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.drop = nn.Dropout(dropout)
        self.factor = d_out ** -0.5
        self.register_buffer("hidden", torch.triu(torch.ones(context_length, context_length), 1) > 0)

    def forward(self, x):
        t = x.shape[1]
        if t > self.hidden.shape[1]:
            raise ValueError("t > context_length")
        q = self.W_query(x)
        k = self.W_key(x)
        v = self.W_value(x)
        att = torch.baddbmm(x.new_zeros(1), q, k.transpose(1, 2), alpha=self.factor)
        att.masked_fill_(self.hidden[:t, :t], float("-inf"))
        att = self.drop(att.softmax(-1))
        return att.bmm(v)
