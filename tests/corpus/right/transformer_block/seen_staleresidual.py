# right: the twin of one with a mistake, staleresidual
# seen: strutive07 tensorflow2.0 issue 14: the feed-forward sub-layer adds the input of the whole block instead of the result of the attention sub-layer.
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
            d_in=d_model,
            d_out=d_model,
            context_length=context_length,
            dropout=dropout,
            num_heads=num_heads,
            causal=causal,
        )
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
        self.dropout1, self.dropout2 = nn.Dropout(dropout), nn.Dropout(dropout)
        self.pre = norm_first

    def forward(self, x: Tensor) -> Tensor:
        inputs = x
        attended = self.norm1(inputs) if self.pre else inputs
        attended = inputs + self.dropout1(self.attention(attended))
        if not self.pre:
            attended = self.norm1(attended)

        output = self.norm2(attended) if self.pre else attended
        output = attended + self.dropout2(self.feed_forward(output))
        if not self.pre:
            output = self.norm2(output)
        return output
