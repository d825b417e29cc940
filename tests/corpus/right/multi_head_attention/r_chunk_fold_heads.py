# Köpfe werden in die Batch-Achse gelegt, dann reicht bmm.
import math

import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
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
        if num_heads < 1 or d_out % num_heads != 0:
            raise ValueError("d_out muss durch num_heads teilbar sein")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.n_heads = num_heads
        self.context_length = context_length
        sichtbar = torch.ones(context_length, context_length, dtype=torch.bool)
        if causal:
            sichtbar = sichtbar.tril()
        self.register_buffer("sichtbar", sichtbar, persistent=False)

    def _falten(self, t: Tensor) -> Tensor:
        # (b, n, d_out) -> (h*b, n, d_head): Kopf i bekommt das i-te Stück der Spalten
        return torch.cat(t.chunk(self.n_heads, dim=-1), dim=0)

    def _entfalten(self, t: Tensor) -> Tensor:
        return torch.cat(t.chunk(self.n_heads, dim=0), dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        n = x.size(1)
        if n > self.context_length:
            raise ValueError("zu viele Tokens")
        q = self._falten(self.W_query(x))
        k = self._falten(self.W_key(x))
        v = self._falten(self.W_value(x))
        s = torch.bmm(q, k.transpose(1, 2)).div(math.sqrt(q.size(-1)))
        s = torch.where(self.sichtbar[:n, :n], s, -math.inf)
        return self.out_proj(self._entfalten(torch.bmm(self.dropout(s.softmax(dim=-1)), v)))
