# exercise: transformer_block
import torch.nn as nn

from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention


class SublayerConnection(nn.Module):
    """
    A residual connection together with a layer norm.
    The norm is handed over in the call, so that it stays a child of the block.
    """

    def __init__(self, dropout, norm_first):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x, norm, sublayer):
        "Apply residual connection to any sublayer with the same size."
        if self.norm_first:
            return x + self.dropout(sublayer(norm(x)))
        return norm(x + self.dropout(sublayer(x)))


class TransformerBlock(nn.Module):
    "EncoderLayer is made up of self-attn and feed forward (defined below)"

    def __init__(self, d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True, causal=True):
        super(TransformerBlock, self).__init__()
        self.attention = MultiHeadAttention(d_model, d_model, context_length, dropout, num_heads, causal=causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
        self.sublayer = nn.ModuleList([SublayerConnection(dropout, norm_first) for _ in range(2)])
        self.size = d_model

    def forward(self, x):
        "Follow Figure 1 (left) for connections."
        x = self.sublayer[0](x, self.norm1, lambda x: self.attention(x))
        return self.sublayer[1](x, self.norm2, self.feed_forward)
