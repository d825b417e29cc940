# mistake: normalises queries and keys to unit length before the product
# true: the scores are cosines divided by sqrt(d_out), so weights are nearly even; first token right
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (
            nn.Linear(d_in, d_out, bias=qkv_bias),
            nn.Linear(d_in, d_out, bias=qkv_bias),
            nn.Linear(d_in, d_out, bias=qkv_bias),
        )
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", ~torch.ones(context_length, context_length).tril().bool())

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.mask.shape[0]:
            raise ValueError(f"at most {self.mask.shape[0]} tokens")
        q = F.normalize(self.W_query(x), dim=-1)
        k = F.normalize(self.W_key(x), dim=-1)
        scores = (q @ k.transpose(-1, -2)) / q.size(-1) ** 0.5
        scores = scores.masked_fill(self.mask[:n, :n], float("-inf"))
        return self.dropout(scores.softmax(-1)) @ self.W_value(x)
