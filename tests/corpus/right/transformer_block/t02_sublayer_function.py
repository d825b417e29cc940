# exercise: transformer_block
import torch.nn.functional as F
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


class TransformerBlock(nn.Module):
    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, context_length: int,
        dropout: float = 0.0, norm_first: bool = True, causal: bool = True,
    ) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(
            d_model, d_model, context_length=context_length, dropout=dropout, num_heads=num_heads, causal=causal
        )
        self.feed_forward = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
        self.rate, self.norm_first = dropout, norm_first

    def sublayer(self, x: Tensor, layer: nn.Module, norm: nn.Module) -> Tensor:
        def branch(t):
            return F.dropout(layer(t), self.rate, self.training)

        return x + branch(norm(x)) if self.norm_first else norm(x + branch(x))

    def forward(self, x: Tensor) -> Tensor:
        x = self.sublayer(x, self.attention, self.norm1)
        return self.sublayer(x, self.feed_forward, self.norm2)
