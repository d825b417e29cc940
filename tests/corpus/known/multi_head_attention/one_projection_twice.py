# mistake: values_from_the_key_layer
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True
    ):
        super().__init__()
        assert d_out % num_heads == 0, "d_out must be divisible by num_heads"
        self.H = num_heads
        self.D = d_out // num_heads
        self.causal = causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.do = nn.Dropout(dropout)
        self.context_length = context_length
        steps = torch.arange(context_length)
        self.register_buffer("blocked", steps.unsqueeze(0) > steps.unsqueeze(1))

    def to_heads(self, t):
        B, n, _ = t.shape
        t = t.reshape(B, n, self.H, self.D).permute(0, 2, 1, 3)
        return t.reshape(B * self.H, n, self.D)

    def from_heads(self, t):
        bh, n, d = t.shape
        t = t.reshape(bh // self.H, self.H, n, d)
        return t.permute(0, 2, 1, 3).reshape(-1, n, self.H * d)

    def forward(self, x):
        n = x.size(1)
        if n > self.context_length:
            raise ValueError(f"{n} tokens, but the context is {self.context_length}")
        Q = self.to_heads(self.W_query(x))
        K = self.to_heads(self.W_key(x))
        V = K
        att = torch.bmm(Q, K.transpose(1, 2)) / self.D**0.5
        if self.causal:
            att = att.masked_fill(self.blocked[:n, :n], -torch.inf)
        p = self.do(torch.softmax(att, dim=2))
        return self.out_proj(self.from_heads(torch.bmm(p, V)))
