# exercise: transformer_block
import torch.nn.functional as F
from torch import nn

from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention

# wrappers as closures: as modules they would rename the weights


def Residual(fn):
    return lambda x: fn(x) + x

def PreNorm(norm, fn):
    return lambda x: fn(norm(x))

def PostNorm(norm, fn):
    return lambda x: norm(fn(x))

def compose(*fns):
    def run(x):
        for f in fns:
            x = f(x)
        return x
    return run


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, context_length, dropout = 0., norm_first = True, causal = True):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, d_model, context_length, dropout, num_heads, causal = causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.norm_first = norm_first
        self.p = dropout

    def drop(self, t):
        return F.dropout(t, p = self.p, training = self.training)

    def forward(self, x):
        pairs = ((self.norm1, self.attention), (self.norm2, self.feed_forward))

        for norm, fn in pairs:
            fn = compose(fn, self.drop)
            if self.norm_first:
                layer = Residual(PreNorm(norm, fn))
            else:
                layer = PostNorm(norm, Residual(fn))
            x = layer(x)

        return x
