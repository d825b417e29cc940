# mistake: diagonal_masked_too
# a token may not attend to itself
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.scale = d_out**-0.5
        past = torch.ones(context_length, context_length, dtype=torch.bool).tril(-1)
        self.register_buffer("past", past)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.past.shape[0]:
            raise ValueError(f"{n} tokens, at most {self.past.shape[0]}")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = torch.bmm(q, k.transpose(1, 2)) * self.scale
        past = self.past[:n, :n]
        scores = scores.masked_fill(~past, -torch.inf)
        weights = scores.softmax(-1)
        weights = torch.where(past.any(-1, keepdim=True), weights, torch.zeros_like(weights))
        return torch.bmm(self.dropout(weights), v)
