# broken: "With causal=True, changing a later token, by any amount, changes no earlier output": masked scores are -1e4, so a token with scores far below that attends to later ones.
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
        if d_out % num_heads:
            raise ValueError("num_heads must divide d_out")
        self.num_heads = num_heads
        self.context_length = context_length
        self.causal = causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def _split(self, t: Tensor) -> Tensor:
        batch, n, d_out = t.shape
        return t.reshape(batch, n, self.num_heads, d_out // self.num_heads).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError("too many tokens")
        queries = self._split(self.W_query(x))
        keys = self._split(self.W_key(x))
        values = self._split(self.W_value(x))
        scores = queries @ keys.transpose(2, 3) / keys.shape[-1] ** 0.5
        if self.causal:
            future = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(future, -1e4)
        weights = torch.softmax(scores, dim=-1)
        weights = self.dropout(weights)
        joined = (weights @ values).transpose(1, 2).flatten(2)
        return self.out_proj(joined)
