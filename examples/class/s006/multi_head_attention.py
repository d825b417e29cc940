import torch
from torch import nn
from torch.nn.functional import dropout as drop
from torch.nn.functional import softmax


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out % num_heads != 0")
        self.rate = dropout
        self.n_heads = num_heads
        self.d_k = d_out // num_heads
        self.causal = causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        blocked = torch.ones(context_length, context_length).triu(1).bool()
        self.register_buffer("blocked", blocked)

    def forward(self, x):
        b, n, _ = x.shape
        if n > len(self.blocked):
            raise ValueError("sequence is too long")
        q, k, v = (
            layer(x).view(b, n, self.n_heads, self.d_k).movedim(1, 2)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        scores = (q @ k.mT) / (self.d_k ** 0.5)
        if self.causal:
            scores = scores.masked_fill(self.blocked[:n, :n], -float("inf"))
        weights = drop(softmax(scores, dim=-1), self.rate, training=self.training)
        heads = (weights @ v).movedim(1, 2)
        return self.out_proj(heads.reshape(b, n, -1))
