import torch.nn as nn

from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, context_length,
                 dropout=0.0, norm_first=True, causal=True):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, d_model, context_length,
                                            dropout, num_heads, causal=causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x):
        if self.norm_first:
            shortcut = x
            x = self.norm1(x)
            x = self.attention(x)
            x = self.dropout(x)
            x = x + shortcut

            shortcut = x
            x = self.norm2(x)
            x = self.feed_forward(x)
            x = self.dropout(x)
            x = x + shortcut
        else:
            shortcut = x
            x = self.attention(x)
            x = self.dropout(x)
            x = self.norm1(x + shortcut)

            shortcut = x
            x = self.feed_forward(x)
            x = self.dropout(x)
            x = self.norm2(x + shortcut)
        return x
