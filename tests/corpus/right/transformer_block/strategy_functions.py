# right: the two orders as plain functions chosen in the constructor, functional dropout
import functools

from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn
from torch.nn import functional as F


def before(norm, part, thin, x):
    return thin(part(norm(x))) + x


def after(norm, part, thin, x):
    return norm(thin(part(x)) + x)


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True, causal=True):
        super().__init__()
        self.norm2 = LayerNorm(d_model)
        self.norm1 = LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model=d_model, d_ff=d_ff, dropout=dropout)
        self.attention = MultiHeadAttention(
            d_in=d_model,
            d_out=d_model,
            context_length=context_length,
            dropout=dropout,
            num_heads=num_heads,
            causal=causal,
        )
        self.rate = dropout
        self.step = before if norm_first else after

    def forward(self, x: Tensor) -> Tensor:
        thin = functools.partial(F.dropout, p=self.rate, training=self.training)
        pairs = ((self.norm1, self.attention), (self.norm2, self.feed_forward))
        return functools.reduce(lambda stream, pair: self.step(*pair, thin, stream), pairs, x)
