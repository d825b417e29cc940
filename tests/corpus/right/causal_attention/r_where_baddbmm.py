import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class CausalAttention(nn.Module):
    """One causal head; the mask is made anew in each call."""

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        self.W_query, self.W_key, self.W_value = (
            nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3)
        )
        self.max_tokens = context_length
        self.rate = dropout
        self.factor = 1.0 / math.sqrt(d_out)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.max_tokens:
            raise ValueError(f"{n} tokens, but the context has only {self.max_tokens}")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        zero = q.new_zeros(())
        raw = torch.baddbmm(zero.expand(b, n, n), q, k.mT, beta=0, alpha=self.factor)
        place = torch.arange(n, device=x.device)
        allowed = place.unsqueeze(0) <= place.unsqueeze(1)
        raw = torch.where(allowed, raw, -torch.inf)
        w = F.dropout(F.softmax(raw, dim=-1), p=self.rate, training=self.training)
        return torch.bmm(w, v)
