# mistake: mask_in_training_only + float32_mask
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
        self.p = dropout
        self.d_out = d_out
        self.context_length = context_length
        self.register_buffer("mask", torch.ones(context_length, context_length).tril())

    def qkv(self, x):
        layers = [self.W_query, self.W_key, self.W_value]
        w = torch.cat([layer.weight for layer in layers])
        bias = None
        if layers[0].bias is not None:
            bias = torch.cat([layer.bias for layer in layers])
        return linear(x, w, bias).split(self.d_out, dim=-1)

    def forward(self, x):
        t = x.shape[-2]
        if t > self.context_length:
            raise ValueError("too many tokens")
        queries, keys, values = self.qkv(x)
        scores = (queries.unsqueeze(2) * keys.unsqueeze(1)).sum(-1)
        scores = scores / self.d_out**0.5
        if self.training:
            scores = scores.masked_fill(self.mask[:t, :t] == 0, float("-inf"))
        weights = torch.softmax(scores, -1)
        weights = drop(weights, p=self.p, training=self.training)
        return weights @ values
