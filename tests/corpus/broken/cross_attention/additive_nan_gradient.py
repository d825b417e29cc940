# broken: An additive mask of -inf and nan_to_num: the output of a row without keys is right, but its gradients are nan.
import math

import torch
import torch.nn.functional as F
from feed_forward import FeedForward
from layer_norm import LayerNorm
from torch import Tensor, nn


class CrossAttention(nn.Module):
    def __init__(
        self, d_query: int, d_context: int, d_out: int, dropout: float, num_heads: int, causal: bool = False
    ) -> None:
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"{num_heads} heads do not divide {d_out}")
        self.heads, self.rate, self.causal = num_heads, dropout, causal
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def split(self, t: Tensor) -> Tensor:
        return t.unflatten(-1, (self.heads, -1))  # batch, tokens, heads, d_head

    def forward(self, x: Tensor, context: Tensor | None = None, key_mask: Tensor | None = None) -> Tensor:
        if self.causal and context is not None:
            raise ValueError("a causal attention has no context")
        source = x if context is None else context
        batch, n, m = x.size(0), x.size(1), source.size(1)
        if key_mask is None:
            key_mask = torch.ones(batch, m, dtype=torch.bool, device=x.device)
        source = torch.where(key_mask[..., None], source, source.new_zeros(()))
        allowed = key_mask[:, None, None, :].expand(batch, 1, n, m)
        if self.causal:
            i = torch.arange(n, device=x.device)
            allowed = allowed & (i[:, None] >= i[None, :])
        q, k, v = self.split(self.W_query(x)), self.split(self.W_key(source)), self.split(self.W_value(source))
        scores = torch.einsum("bnhd,bmhd->bhnm", q, k) / math.sqrt(q.size(-1))
        scores = scores + torch.zeros(allowed.shape, dtype=x.dtype, device=x.device).masked_fill(~allowed, float("-inf"))
        weights = scores.softmax(-1).nan_to_num(0.0)
        weights = F.dropout(weights, self.rate, self.training)
        return self.out_proj(torch.einsum("bhnm,bmhd->bnhd", weights, v).flatten(2))


class EncoderBlock(nn.Module):
    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float) -> None:
        super().__init__()
        self.rate = dropout
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
        self.attention = CrossAttention(d_model, d_model, d_model, dropout, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)

    def forward(self, x: Tensor, key_mask: Tensor | None = None) -> Tensor:
        x = x + F.dropout(self.attention(self.norm1(x), None, key_mask), self.rate, self.training)
        return x + F.dropout(self.feed_forward(self.norm2(x)), self.rate, self.training)


class DecoderBlock(nn.Module):
    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float) -> None:
        super().__init__()
        self.rate = dropout
        for i in (1, 2, 3):
            setattr(self, f"norm{i}", LayerNorm(d_model))
        self.self_attention = CrossAttention(d_model, d_model, d_model, dropout, num_heads, True)
        self.cross_attention = CrossAttention(d_model, d_model, d_model, dropout, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)

    def forward(
        self, x: Tensor, memory: Tensor, key_mask: Tensor | None = None, memory_mask: Tensor | None = None
    ) -> Tensor:
        steps = (
            lambda x: self.self_attention(self.norm1(x), None, key_mask),
            lambda x: self.cross_attention(self.norm2(x), memory, memory_mask),
            lambda x: self.feed_forward(self.norm3(x)),
        )
        for step in steps:
            x = x + F.dropout(step(x), self.rate, self.training)
        return x
