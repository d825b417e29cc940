# mistake: causal_flag_lost
# causal is not handed on to the attention, so with causal=False later tokens are still masked
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
        self.attention = MultiHeadAttention(d_model, d_model, context_length, dropout, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.resid_drop = nn.Dropout(dropout)
        self.norm_first = norm_first
        self.causal = causal

    def forward(self, x: Tensor) -> Tensor:
        drop = self.resid_drop
        if not self.norm_first:
            y = self.norm1(x + drop(self.attention(x)))
            return self.norm2(y + drop(self.feed_forward(y)))
        y = x + drop(self.attention(self.norm1(x)))
        return y + drop(self.feed_forward(self.norm2(y)))
