# right: dropout by hand with torch.bernoulli on a float32 tensor of keep probabilities, the mask is made in forward, the rate 1 is a case of its own
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
        for name in ("W_query", "W_key", "W_value"):
            self.add_module(name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.limit = context_length
        self.rate = dropout

    def _thin_out(self, w: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return w
        if self.rate == 1:
            return w * 0
        keep = 1.0 - self.rate
        coins = torch.bernoulli(torch.full(w.shape, keep, device=w.device))
        return w * coins.to(w.dtype) / keep

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.limit:
            raise ValueError(f"{n} tokens, but at most {self.limit} fit")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = torch.einsum("bid,bjd->bij", q, k) / math.sqrt(q.shape[-1])
        later = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        w = torch.softmax(scores.masked_fill(later, -torch.inf), dim=-1)
        return torch.einsum("bij,bjd->bid", self._thin_out(w), v)
