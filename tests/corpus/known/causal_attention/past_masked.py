# mistake: triangle_swapped + float32_mask
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
        self.drop_rate = dropout
        self.size = d_out
        self.context_length = context_length
        self.register_buffer("see", torch.ones(context_length, context_length).tril(-1))

    def qkv(self, x):
        layers = [self.W_query, self.W_key, self.W_value]
        w = torch.cat([layer.weight for layer in layers])
        bias = None
        if layers[0].bias is not None:
            bias = torch.cat([layer.bias for layer in layers])
        return linear(x, w, bias).split(self.size, dim=-1)

    def forward(self, x):
        n_tok = x.shape[-2]
        if n_tok > self.context_length:
            raise ValueError("too many tokens")
        Q, K, V = self.qkv(x)
        sim = (Q.unsqueeze(2) * K.unsqueeze(1)).sum(-1)
        sim = sim / self.size**0.5
        sim = sim.masked_fill(self.see[:n_tok, :n_tok] == 1, float("-inf"))
        a = torch.softmax(sim, -1)
        a = drop(a, p=self.drop_rate, training=self.training)
        return a @ V
