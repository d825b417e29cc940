# broken: "module.to(dtype) is enough to convert the module": the additive mask of an earlier call is kept with its old dtype, so a module that was called before it is converted fails
import math

import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        self.d_out = d_out
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.mask = None

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError(f"{n} tokens, but at most {self.context_length} are possible")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2) / math.sqrt(self.d_out)
        if self.mask is None or self.mask.shape[0] < n:
            self.mask = torch.full((n, n), float("-inf"), dtype=scores.dtype, device=x.device).triu(1)
        scores = scores + self.mask[:n, :n]
        weights = torch.softmax(scores, dim=-1)
        return self.dropout(weights) @ values
