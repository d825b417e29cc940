# mistake: multiplies by out_proj.weight only and never adds its bias
# true: the output is the expected one minus out_proj.bias; the bias gets no gradient
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("heads")
        self.num_heads, self.causal, self.context_length = num_heads, causal, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.attn_dropout = nn.Dropout(dropout)
        if causal:
            t = torch.arange(context_length)
            self.register_buffer("mask", t[None, :] > t[:, None])

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.context_length:
            raise ValueError("more tokens than context_length")
        n = x.shape[1]
        q = self.W_query(x).unflatten(2, (self.num_heads, -1))
        k = self.W_key(x).unflatten(2, (self.num_heads, -1))
        v = self.W_value(x).unflatten(2, (self.num_heads, -1))
        s = torch.einsum("bqhd,bkhd->bhqk", q, k) / q.size(-1) ** 0.5
        if self.causal:
            s = s.masked_fill(self.mask[:n, :n], float("-inf"))
        w = self.attn_dropout(torch.softmax(s, -1))
        heads = torch.einsum("bhqk,bkhd->bqhd", w, v).flatten(2)
        return torch.einsum("bqi,oi->bqo", heads, self.out_proj.weight)
