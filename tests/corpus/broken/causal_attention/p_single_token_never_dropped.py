# promise: A single token returns its value at once, so its weight is never dropped in training.
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False
    ) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        mask = torch.triu(torch.ones(context_length, context_length, dtype=torch.bool), diagonal=1)
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.mask.shape[0]:
            raise ValueError("more tokens than context_length")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        if n == 1:
            return v + 0.0 * (q + k)
        s = torch.bmm(q, k.mT) / k.shape[-1] ** 0.5
        w = torch.softmax(s.masked_fill(self.mask[:n, :n], -torch.inf), dim=-1)
        return torch.bmm(self.dropout(w), v)
