"""Multi-head attention in einsum notation (b batch, h head, q/k tokens, d head feature, i in, o out)."""

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True
    ):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out={d_out} is not a multiple of num_heads={num_heads}")
        self.h, self.d = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)
        p = torch.arange(context_length)
        visible = p[:, None] >= p[None, :]
        self.register_buffer("visible", visible if causal else torch.ones_like(visible))

    def heads(self, layer, x):
        W = layer.weight.unflatten(0, (self.h, self.d))
        y = torch.einsum("bti,hdi->bhtd", x, W)
        if layer.bias is not None:
            y = y + layer.bias.view(self.h, 1, self.d)
        return y

    def forward(self, x):
        t = x.shape[1]
        if t > len(self.visible):
            raise ValueError(f"{t} tokens do not fit into a context of {len(self.visible)}")
        Q, K, V = (
            self.heads(self.W_query, x),
            self.heads(self.W_key, x),
            self.heads(self.W_value, x),
        )
        s = torch.einsum("bhqd,bhkd->bhqk", Q, K) * self.d**-0.5
        s = torch.where(self.visible[:t, :t], s, -torch.inf)
        e = torch.exp(s - s.detach().amax(-1, keepdim=True))
        w = self.drop(e / e.sum(-1, keepdim=True))
        c = torch.einsum("bhqk,bhkd->bqhd", w, V)
        W_o = self.out_proj.weight.unflatten(1, (self.h, self.d))
        return torch.einsum("bqhd,ohd->bqo", c, W_o) + self.out_proj.bias
