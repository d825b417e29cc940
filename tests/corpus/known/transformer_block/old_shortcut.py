# mistake: second_residual_from_the_original_x
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
        attn = MultiHeadAttention(
            d_model, d_model, context_length, dropout, num_heads, causal=causal
        )
        self.attention = attn
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.attn_drop = nn.Dropout(dropout)
        self.ffn_drop = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x: Tensor) -> Tensor:
        if not self.norm_first:
            h = self.norm1(torch.add(x, self.attn_drop(self.attention(x))))
            return self.norm2(torch.add(h, self.ffn_drop(self.feed_forward(h))))

        residual = x
        x = self.norm1(x)
        x = self.attention(x)
        x = self.attn_drop(x)
        x = torch.add(x, residual)

        x = self.norm2(x)
        x = self.feed_forward(x)
        x = self.ffn_drop(x)
        return torch.add(x, residual)
