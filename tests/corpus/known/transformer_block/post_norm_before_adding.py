# mistake: post_norm_before_the_addition
# post-norm normalises the output of the sub-layer before it is added, x + norm(attention(x)), and not the sum
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
        self.rate = dropout
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model)
        self.attention = MultiHeadAttention(
            d_model, d_model, context_length, dropout, num_heads, causal=causal
        )
        self.norm2 = LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)

    def _sublayer(self, x: Tensor, part: nn.Module, norm: nn.Module) -> Tensor:
        if self.norm_first:
            return x + F.dropout(part(norm(x)), self.rate, self.training)
        return x + norm(F.dropout(part(x), self.rate, self.training))

    def forward(self, x: Tensor) -> Tensor:
        x = self._sublayer(x, self.attention, self.norm1)
        return self._sublayer(x, self.feed_forward, self.norm2)
