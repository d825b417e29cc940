# style: unusual
import math

import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    """einsum all the way: b batch, i/j tokens, h head, d feature of a head"""

    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int,
                 qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        self.d_head, rest = divmod(d_out, num_heads)
        if rest:
            raise ValueError("d_out has to be a multiple of num_heads")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.num_heads, self.causal, self.limit = num_heads, causal, context_length
        self.dropout = nn.Dropout(dropout)

    def _by_head(self, layer: nn.Linear, x: Tensor) -> Tensor:
        return layer(x).unflatten(-1, (self.num_heads, self.d_head))

    def forward(self, x: Tensor) -> Tensor:
        _, n, _ = x.shape
        if n > self.limit:
            raise ValueError(f"{n} > {self.limit} tokens")
        q, k, v = (self._by_head(layer, x) for layer in (self.W_query, self.W_key, self.W_value))
        logits = torch.einsum("bihd,bjhd->bhij", q, k) / math.sqrt(self.d_head)
        if self.causal:
            later = torch.ones(n, n, dtype=torch.bool, device=x.device).triu_(1)
            logits = logits.masked_fill(later, -math.inf)
        probs = self.dropout(torch.softmax(logits, -1))
        return self.out_proj(torch.einsum("bhij,bjhd->bihd", probs, v).flatten(-2))
