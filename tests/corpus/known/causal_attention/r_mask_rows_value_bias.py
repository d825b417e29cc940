# mistake: mask_of_the_last_tokens + bias_ignored
import math

import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False
    ) -> None:
        super().__init__()
        self.scale = math.sqrt(d_out)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("allowed", torch.tril(torch.ones((context_length, context_length), dtype=torch.bool)))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[-2]
        if n > self.allowed.shape[-1]:
            raise ValueError("too many tokens")
        logits = self.W_query(x) @ self.W_key(x).transpose(-1, -2) / self.scale
        logits = torch.where(self.allowed[-n:, :n], logits, float("-inf"))
        return self.dropout(logits.softmax(-1)) @ self.W_value(x)
