# mistake: mask_as_parameter
# the additive mask is an nn.Parameter
import torch
from torch import Tensor, nn


def look_back_only(size: int) -> Tensor:
    m = torch.zeros(size, size)
    above = torch.triu_indices(size, size, offset=1)
    m[above[0], above[1]] = float("-inf")
    return m


class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.causal_bias = nn.Parameter(look_back_only(context_length))  # moves with .to(...)
        self.softmax = nn.Softmax(dim=-1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        n, limit = x.shape[1], self.causal_bias.shape[0]
        if n > limit:
            raise ValueError(f"got {n} tokens, limit {limit}")
        keys = self.W_key(x)
        scores = self.W_query(x) @ keys.transpose(1, 2) / keys.shape[2] ** 0.5
        return self.dropout(self.softmax(scores + self.causal_bias[:n, :n])) @ self.W_value(x)
