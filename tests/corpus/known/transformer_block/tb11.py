# mistake: causal_flag_lost
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
        self.norm_first = norm_first
        self.causal = causal
        self.attention = MultiHeadAttention(
            d_in=d_model,
            d_out=d_model,
            context_length=context_length,
            dropout=dropout,
            num_heads=num_heads,
            qkv_bias=False,
        )
        self.feed_forward = FeedForward(d_model=d_model, d_ff=d_ff, dropout=dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        pre = (lambda norm, t: norm(t)) if self.norm_first else (lambda norm, t: t)
        post = (lambda norm, t: t) if self.norm_first else (lambda norm, t: norm(t))
        x = post(self.norm1, x + self.dropout(self.attention(pre(self.norm1, x))))
        return post(self.norm2, x + self.dropout(self.feed_forward(pre(self.norm2, x))))
