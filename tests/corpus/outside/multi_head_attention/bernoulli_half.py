# mistake: bernoulli_() ignores the rate, so half of the weights are dropped at any rate
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("num_heads does not divide d_out")
        self.num_heads = num_heads
        self.context_length = context_length
        self.causal = causal
        self.d_head = d_out // num_heads
        self.p = dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)

    def drop(self, weights: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return weights
        if self.p == 1:
            return weights * 0
        keep = torch.full_like(weights, 1 - self.p).bernoulli_()
        return weights * keep / (1 - self.p)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("too many tokens")
        q = self.W_query(x).view(b, n, self.num_heads, self.d_head).transpose(1, 2)
        k = self.W_key(x).view(b, n, self.num_heads, self.d_head).transpose(1, 2)
        v = self.W_value(x).view(b, n, self.num_heads, self.d_head).transpose(1, 2)
        scores = q @ k.transpose(2, 3) / self.d_head**0.5
        if self.causal:
            future = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(future, -torch.inf)
        weights = self.drop(torch.softmax(scores, dim=-1))
        context = (weights @ v).transpose(1, 2).reshape(b, n, self.num_heads * self.d_head)
        return self.out_proj(context)
