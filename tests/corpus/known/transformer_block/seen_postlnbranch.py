# mistake: second_residual_skips_norm1
# seen: NVIDIA NeMo pull 4350: in the post-norm block the second residual branches off before norm1, so the unnormalised sum is added to the feed-forward output.
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
        self.attention = MultiHeadAttention(
            d_model, d_model, context_length, dropout, num_heads, False, causal
        )
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.drop = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x: Tensor) -> Tensor:
        residual = x
        hidden = self.norm1(x) if self.norm_first else x
        hidden = residual + self.drop(self.attention(hidden))

        if self.norm_first:
            residual = hidden
            hidden = self.norm2(hidden)
        else:
            residual = hidden
            hidden = self.norm1(hidden)
        hidden = residual + self.drop(self.feed_forward(hidden))
        return hidden if self.norm_first else self.norm2(hidden)
