# style: unusual
import torch
import torch.nn.functional as F
from torch import Tensor, nn


def heads_to_batch(t: Tensor, h: int) -> Tensor:
    """(b, n, h*d) -> (b*h, n, d), like transpose_qkv in d2l"""
    b, n, width = t.shape
    return t.reshape(b, n, h, width // h).transpose(1, 2).reshape(b * h, n, width // h)


def batch_to_heads(t: Tensor, h: int) -> Tensor:
    """(b*h, n, d) -> (b, n, h*d), undoes heads_to_batch"""
    bh, n, d = t.shape
    return t.reshape(bh // h, h, n, d).transpose(1, 2).reshape(bh // h, n, h * d)


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
        if d_out % num_heads:
            raise ValueError(f"cannot split {d_out} columns into {num_heads} heads")
        self.num_heads = num_heads
        self.context_length = context_length
        self.causal = causal
        self.rate = dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError("too many tokens")
        q = heads_to_batch(self.W_query(x), self.num_heads)
        k = heads_to_batch(self.W_key(x), self.num_heads)
        v = heads_to_batch(self.W_value(x), self.num_heads)
        nothing = q.new_zeros(1, 1, 1)
        scores = torch.baddbmm(nothing, q, k.transpose(1, 2), beta=0, alpha=q.shape[-1] ** -0.5)
        if self.causal:
            step = torch.arange(n, device=q.device)
            scores = scores.masked_fill(step[:, None] < step, float("-inf"))
        weights = F.dropout(scores.softmax(dim=-1), self.rate, self.training)
        return self.out_proj(batch_to_heads(torch.bmm(weights, v), self.num_heads))
