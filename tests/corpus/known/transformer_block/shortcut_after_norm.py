# mistake: residual_from_the_normed_x
import torch
from torch import Tensor, nn

from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention


class TransformerBlock(nn.Module):
    """Transformer block with pre- or post-norm."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        context_length: int,
        dropout: float = 0.0,
        norm_first: bool = True,
        causal: bool = True,
    ):
        super().__init__()
        mha = MultiHeadAttention(
            d_model, d_model, context_length, dropout, num_heads, causal=causal
        )
        self.attention = mha
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.drop1 = nn.Dropout(dropout)
        self.drop2 = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x: Tensor) -> Tensor:
        if not self.norm_first:
            y = self.norm1(torch.add(x, self.drop1(self.attention(x))))
            return self.norm2(torch.add(y, self.drop2(self.feed_forward(y))))

        x = self.norm1(x)
        shortcut = x
        x = self.attention(x)
        x = self.drop1(x)
        x = torch.add(x, shortcut)

        shortcut = x
        x = self.norm2(x)
        x = self.feed_forward(x)
        x = self.drop2(x)
        return torch.add(x, shortcut)
