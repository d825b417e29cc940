# mistake: scaled_by_root_of_n_tokens
import torch
from torch import nn
from torch.nn.functional import dropout as drop
from torch.nn.functional import linear


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.rate = dropout
        self.dk = d_out
        self.context_length = context_length
        self.register_buffer("tril", torch.ones(context_length, context_length).tril())

    def qkv(self, x):
        layers = [self.W_query, self.W_key, self.W_value]
        w = torch.cat([layer.weight for layer in layers])
        bias = None
        if layers[0].bias is not None:
            bias = torch.cat([layer.bias for layer in layers])
        return linear(x, w, bias).split(self.dk, dim=-1)

    def forward(self, x):
        seq = x.shape[-2]
        if seq > self.context_length:
            raise ValueError("too many tokens")
        q, k, v = self.qkv(x)
        dots = (q.unsqueeze(2) * k.unsqueeze(1)).sum(-1)
        dots = dots / seq**0.5
        dots = dots.masked_fill(self.tril[:seq, :seq] == 0, float("-inf"))
        a = torch.softmax(dots, -1)
        a = drop(a, p=self.rate, training=self.training)
        return a @ v
