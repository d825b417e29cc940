import torch.nn as nn

from multi_head_attention import MultiHeadAttention
from feed_forward import FeedForward
from layer_norm import LayerNorm


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True, causal=True):
        super(TransformerBlock, self).__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, d_model, context_length, dropout, num_heads, causal=causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        if self.norm_first == True:
            out = self.norm1(x)
            out = self.attention(out)
            x = x + self.dropout(out)
            out = self.norm2(x)
            out = self.feed_forward(out)
            x = x + self.dropout(out)
        else:
            out = self.attention(x)
            x = self.norm1(x + self.dropout(out))
            out = self.feed_forward(x)
            x = self.norm2(x + self.dropout(out))
        return x
