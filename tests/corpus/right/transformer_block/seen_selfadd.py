# right: the twin of one with a mistake, selfadd
# seen: kyegomez BitNet issue 32: the attention output overwrites x before it is added, so the output is doubled and the residual is lost.
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
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.attention = MultiHeadAttention(
            d_model, d_model, context_length, dropout, num_heads, causal=causal
        )
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.drop = nn.Dropout(p=dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self._pre(x) if self.norm_first else self._post(x)

    def _pre(self, x: Tensor) -> Tensor:
        y = self.drop(self.attention(self.norm1(x)))
        x = x + y
        return x + self.drop(self.feed_forward(self.norm2(x)))

    def _post(self, x: Tensor) -> Tensor:
        y = self.drop(self.attention(x))
        x = self.norm1(x + y)
        return self.norm2(x + self.drop(self.feed_forward(x)))
