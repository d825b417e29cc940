# promise: the batch may have any size (a batch of one loses its axis)
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1) > 0)

    def forward(self, x: Tensor) -> Tensor:
        _, n, _ = x.shape
        if n > self.mask.shape[0]:
            raise ValueError("n > context_length")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = torch.einsum("bqd,bkd->bqk", q, k).div(k.shape[-1] ** 0.5)
        weights = self.dropout(scores.masked_fill(self.mask[:n, :n], -torch.inf).softmax(-1))
        context = weights @ v
        return context.squeeze(0)
