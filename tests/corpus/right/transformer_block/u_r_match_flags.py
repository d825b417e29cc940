# right: separate methods for pre-norm and post-norm, chosen by name in forward, and one dropout module per sub-layer.
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


class _Wired(nn.Module):
    def pre(self, x: Tensor) -> Tensor:
        y = self.drop1(self.attention(self.norm1(x)))
        x = y + x
        z = self.drop2(self.feed_forward(self.norm2(x)))
        return z + x

    def post(self, x: Tensor) -> Tensor:
        middle = self.norm1(self.drop1(self.attention(x)) + x)
        return self.norm2(self.drop2(self.feed_forward(middle)) + middle)


class TransformerBlock(_Wired):
    def __init__(
        self, d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True, causal=True
    ) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(
            d_model, d_model, context_length, dropout, num_heads, False, causal
        )
        self.feed_forward = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.drop1 = nn.Dropout(dropout)
        self.drop2 = nn.Dropout(dropout)
        self.order = "pre" if norm_first else "post"

    def forward(self, x: Tensor) -> Tensor:
        return getattr(self, self.order)(x)
