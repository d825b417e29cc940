# mistake: mask_of_ones_added
import math

import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False
    ) -> None:
        super().__init__()
        for name in ("W_query", "W_key", "W_value"):
            setattr(self, name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.context_length = context_length
        self.scale = 1 / math.sqrt(d_out)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        n = x.size(1)
        if n > self.context_length:
            raise ValueError(f"{n} tokens, at most {self.context_length}")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = torch.einsum("bid,bjd->bij", q, k) * self.scale
        visible = torch.tril(torch.ones(n, n, dtype=scores.dtype, device=scores.device))
        weights = (scores + visible).softmax(dim=-1)
        return torch.einsum("bij,bjd->bid", self.drop(weights), v)
