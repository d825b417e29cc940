# mistake: dropout_on_the_residual_stream
# seen: hyunwoongko issue 8 and soobinseo TTS issue 11: dropout is applied to the sum with the residual instead of to the output of the sub-layer, so x itself is dropped.
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn
from torch.nn import functional as F


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
            d_model, d_model, context_length, dropout, num_heads, causal=causal
        )
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.rate = dropout
        self.norm_first = norm_first

    def _residual(self, x: Tensor, update: Tensor) -> Tensor:
        return F.dropout(x + update, self.rate, training=self.training)

    def forward(self, x: Tensor) -> Tensor:
        steps = ((self.norm1, self.attention), (self.norm2, self.feed_forward))
        for norm, layer in steps:
            if self.norm_first:
                x = self._residual(x, layer(norm(x)))
            else:
                x = norm(self._residual(x, layer(x)))
        return x
