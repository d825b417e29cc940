# mistake: length_not_checked
# no limit on the number of tokens
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), 1).bool())

    def _mask(self, n: int) -> Tensor:
        if n <= self.mask.shape[0]:
            return self.mask[:n, :n]
        return torch.ones(n, n, dtype=torch.bool, device=self.mask.device).triu(1)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        s = q @ k.transpose(-1, -2) / (q.shape[-1] ** 0.5)
        s = torch.where(self._mask(x.shape[-2]), torch.full_like(s, float("-inf")), s)
        return self.dropout(torch.softmax(s, dim=-1)) @ v
