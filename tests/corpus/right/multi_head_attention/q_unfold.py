import math

import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    """Heads come last in the table of scores: (batch, query, key, head)."""

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
        causal: bool = True,
    ) -> None:
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads must divide d_out")
        self.d_head = d_out // num_heads
        self.causal = causal
        self.context_length = context_length
        for name in ["W_query", "W_key", "W_value"]:
            setattr(self, name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.out_proj = nn.Linear(d_out, d_out, bias=True)
        self.dropout = nn.Dropout(dropout)

    def heads(self, t: Tensor) -> Tensor:
        return t.unfold(-1, self.d_head, self.d_head)  # (batch, token, head, column)

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.shape[1]
        if tokens > self.context_length:
            raise ValueError("more tokens than the context has room for")
        Q, K, V = (self.heads(f(x)) for f in (self.W_query, self.W_key, self.W_value))
        S = (Q.unsqueeze(2) * K.unsqueeze(1)).sum(-1) / math.sqrt(self.d_head)
        if self.causal:
            later = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).triu(1)
            S = S.masked_fill(later[None, :, :, None], -math.inf)
        W = self.dropout(S.softmax(dim=2))
        C = (W.unsqueeze(-1) * V.unsqueeze(1)).sum(dim=2)
        return self.out_proj(C.reshape(*x.shape[:2], -1))
