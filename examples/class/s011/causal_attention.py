import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length, dtype=torch.bool).tril())

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.mask.shape[0]:
            raise ValueError("too many tokens")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        # cette boucle est remplacée par un masque
        scores = (q @ k.mT / k.shape[-1] ** 0.5).masked_fill(~self.mask[:n, :n], -torch.inf)
        return self.dropout(torch.softmax(scores, dim=-1)) @ v
