# mistake: moves the token axis to the front and then attends over the batch
# true: a token attends to the tokens at its position in other sequences; a batch of one gives its own value for each token
import math
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.drop = nn.Dropout(dropout)
        self.context_length = context_length
        self.register_buffer("mask", torch.zeros(context_length, context_length).masked_fill_(
            torch.ones(context_length, context_length).triu(1).bool(), float("-inf")))

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.context_length:
            raise ValueError("context too short")
        x = x.transpose(0, 1)                       # seq first
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        n = scores.size(-1)
        scores = scores + self.mask[:n, :n]
        out = self.drop(scores.softmax(-1)) @ v
        return out.transpose(0, 1)
