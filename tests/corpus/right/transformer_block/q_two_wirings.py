import torch
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


class TransformerBlock(nn.Module):
    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        context_length: int,
        dropout: float = 0.0,
        norm_first: bool = True,
        causal: bool = True,
    ) -> None:
        super().__init__()
        self.rate = dropout
        self.wiring = "pre" if norm_first else "post"
        self.attention = MultiHeadAttention(
            d_model, d_model, context_length, dropout, num_heads, causal=causal
        )
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)

    def thinned(self, t: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return t
        kept = torch.rand(t.shape, device=t.device) >= self.rate
        return torch.where(kept, t / max(1 - self.rate, 1e-9), 0.0)

    def pre(self, x: Tensor) -> Tensor:
        from_attention = self.thinned(self.attention(self.norm1(x)))
        from_network = self.thinned(self.feed_forward(self.norm2(from_attention + x)))
        return x + from_attention + from_network

    def post(self, x: Tensor) -> Tensor:
        middle = self.norm1(self.thinned(self.attention(x)) + x)
        return self.norm2(self.thinned(self.feed_forward(middle)) + middle)

    def forward(self, x: Tensor) -> Tensor:
        return getattr(self, self.wiring)(x)
