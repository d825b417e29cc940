from torch import nn
from torch.nn.functional import dropout as drop

from multi_head_attention import MultiHeadAttention
from feed_forward import FeedForward
from layer_norm import LayerNorm


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True,
                 causal=True):
        super().__init__()
        self.rate = dropout
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(
            d_model, d_model, context_length, dropout, num_heads, causal=causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)

    def step(self, x, layer, norm):
        if self.norm_first:
            return x + drop(layer(norm(x)), self.rate, self.training)
        return norm(x + drop(layer(x), self.rate, self.training))

    def forward(self, x):
        x = self.step(x, self.attention, self.norm1)
        x = self.step(x, self.feed_forward, self.norm2)
        return x
