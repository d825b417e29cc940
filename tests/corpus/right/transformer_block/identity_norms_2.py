# right: one formula for both orders, in which nn.Identity takes the place of the norm that is not there; two Dropout modules
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
        args = (d_model, d_model, context_length, dropout, num_heads)
        self.attention = MultiHeadAttention(*args, causal=causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
        self.drop1, self.drop2 = nn.Dropout(dropout), nn.Dropout(dropout)
        self.none = nn.Identity()
        self.norm_first = norm_first

    def _norms(self, norm: nn.Module) -> tuple[nn.Module, nn.Module]:
        return (norm, self.none) if self.norm_first else (self.none, norm)

    def forward(self, x: Tensor) -> Tensor:
        pre, post = self._norms(self.norm1)
        middle = post(x.add(self.drop1(self.attention(pre(x)))))
        pre, post = self._norms(self.norm2)
        return post(middle.add(self.drop2(self.feed_forward(pre(middle)))))
