# promise: the -inf of torch.where is a CPU tensor with one axis (the mask itself is a good buffer)
import torch
from torch import nn
import torch.nn.functional as F


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = dropout
        self.register_buffer(
            "mask", torch.tril(torch.ones(context_length, context_length, dtype=torch.bool))
        )

    def forward(self, x):
        n = x.shape[1]
        if n > self.mask.shape[0]:
            raise ValueError(f"at most {self.mask.shape[0]} tokens, got {n}")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = q @ k.mT / (q.shape[-1] ** 0.5)
        minus_inf = torch.full((1,), float("-inf"), dtype=scores.dtype)
        scores = torch.where(self.mask[:n, :n], scores, minus_inf)
        weights = F.softmax(scores, dim=-1)
        weights = F.dropout(weights, self.dropout, training=self.training)
        return weights @ v
