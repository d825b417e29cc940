# broken: "dropout is the rate at which weights are dropped in training": with n_tokens 1 the value is returned at once, so the only weight is never dropped
import math

import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        self.d_out = d_out
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        mask = torch.ones(context_length, context_length, dtype=torch.bool).triu(1)
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        n_tokens = x.shape[1]
        if n_tokens > self.context_length:
            raise ValueError(f"{n_tokens} tokens, but context_length is {self.context_length}")
        if n_tokens == 1:
            return self.W_value(x) + 0 * (self.W_query(x) + self.W_key(x))
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2) / math.sqrt(self.d_out)
        scores = scores.masked_fill(self.mask[:n_tokens, :n_tokens], float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return self.dropout(weights) @ values
