# mistake: dropout_in_eval
# functional dropout with its default training=True
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.rate = dropout
        self.register_buffer("lower", torch.tril(torch.ones(context_length, context_length, dtype=torch.uint8)))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.lower.shape[0]:
            raise ValueError("n_tokens")
        scores = (self.W_query(x).unsqueeze(2) * self.W_key(x).unsqueeze(1)).sum(-1)
        scores = scores / self.W_key.weight.shape[0] ** 0.5
        scores = scores.masked_fill(self.lower[:n, :n] == 0, float("-inf"))
        weights = F.dropout(scores.softmax(-1), p=self.rate)
        return (weights.unsqueeze(-1) * self.W_value(x).unsqueeze(1)).sum(2)
