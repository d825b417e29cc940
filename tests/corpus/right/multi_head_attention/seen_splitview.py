# right: the twin of one with a mistake, splitview
# seen: reczoo/FuxiCTR issue 30. Mistake: heads are split by a reshape to (batch * heads, tokens, size) without a transpose, so a head mixes tokens and columns. (Fixed in this twin.)
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
        self.d_head = d_out // num_heads
        self.context_length = context_length
        self.causal = causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def to_heads(self, t: Tensor) -> Tensor:
        """(batch, n, d_out) -> (batch * heads, n, d_head)"""
        b, n, _ = t.shape
        t = t.reshape(b, n, self.num_heads, self.d_head).transpose(1, 2)
        return t.reshape(b * self.num_heads, n, self.d_head)

    def from_heads(self, t: Tensor, b: int) -> Tensor:
        t = t.reshape(b, self.num_heads, -1, self.d_head).transpose(1, 2)
        return t.reshape(b, -1, self.num_heads * self.d_head)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("too many tokens")
        q = self.to_heads(self.W_query(x))
        k = self.to_heads(self.W_key(x))
        v = self.to_heads(self.W_value(x))
        scores = torch.bmm(q, k.transpose(1, 2)) / self.d_head**0.5
        if self.causal:
            later = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(self.from_heads(torch.bmm(weights, v), b))
