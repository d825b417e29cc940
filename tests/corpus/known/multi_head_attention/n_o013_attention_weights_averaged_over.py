# mistake: weights_averaged_over_heads
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    """Attention in num_heads independent heads, each on its own d_out // num_heads columns."""

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
        assert_divides(num_heads, d_out)
        self.h = num_heads
        self.causal = causal
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError("context_length exceeded")
        q = self.W_query(x).unflatten(-1, (self.h, -1)).transpose(1, 2)
        k = self.W_key(x).unflatten(-1, (self.h, -1)).transpose(1, 2)
        v = self.W_value(x).unflatten(-1, (self.h, -1)).transpose(1, 2)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if self.causal:
            future = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(future, float("-inf"))
        weights = scores.softmax(dim=-1).mean(dim=1, keepdim=True)
        weights = self.dropout(weights.expand_as(scores))
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))


def assert_divides(a: int, b: int) -> None:
    if b % a:
        raise ValueError(f"{a} does not divide {b}")
