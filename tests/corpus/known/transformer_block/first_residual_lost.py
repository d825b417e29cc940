# mistake: second_residual_from_the_original_x
# the second residual adds the block's input again and not the result of the first line, so the attention's output is lost from the stream
import torch.nn as nn
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor


class TransformerBlock(nn.Module):
    """Attention and feed-forward with shortcuts."""

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
        self.attention = MultiHeadAttention(
            d_in=d_model,
            d_out=d_model,
            context_length=context_length,
            dropout=dropout,
            num_heads=num_heads,
            causal=causal,
        )
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.drop_shortcut = nn.Dropout(dropout)
        self.pre = norm_first

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x
        if self.pre:
            x = self.drop_shortcut(self.attention(self.norm1(x)))
            x = x + shortcut
            x = self.drop_shortcut(self.feed_forward(self.norm2(x)))
            return x + shortcut
        x = self.norm1(shortcut + self.drop_shortcut(self.attention(x)))
        x = self.drop_shortcut(self.feed_forward(x))
        return self.norm2(shortcut + x)
