import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    """One head, looks back only."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.scale = d_out**0.5
        self.max_tokens = context_length
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("tril", torch.tril(torch.ones(context_length, context_length)))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.max_tokens:
            raise ValueError(f"{n} > {self.max_tokens}")
        scores = self.W_query(x) @ self.W_key(x).transpose(-2, -1) / self.scale
        scores = scores.masked_fill(self.tril[:n, :n] == 0, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return self.dropout(weights) @ self.W_value(x)
