import torch
from torch import Tensor, nn


class _Projections(nn.Module):
    def __init__(self, d_in, d_out, bias):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=bias)
        self.W_key = nn.Linear(d_in, d_out, bias=bias)
        self.W_value = nn.Linear(d_in, d_out, bias=bias)

    def qkv(self, x):
        return self.W_query(x), self.W_key(x), self.W_value(x)


class _Attention(_Projections):
    def hide(self, scores):
        return scores

    def drop(self, weights):
        return weights

    def forward(self, x):
        q, k, v = self.qkv(x)
        scores = q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5
        return self.drop(torch.softmax(self.hide(scores), dim=-1)) @ v


class CausalAttention(_Attention):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__(d_in, d_out, qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", ~torch.tril(torch.ones(context_length, context_length)).to(torch.bool))

    def hide(self, scores):
        n = scores.shape[-1]
        return scores.masked_fill(self.mask[:n, :n], float("-inf"))

    def drop(self, weights):
        return self.dropout(weights)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.mask.shape[0]:
            raise ValueError("context_length exceeded")
        return super().forward(x)
