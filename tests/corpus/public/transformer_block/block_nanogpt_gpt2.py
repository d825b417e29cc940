# exercise: transformer_block
# deviates: norm1 is created before attention, norm2 before feed_forward (no random numbers, so the same weights; another order in the state)
import torch.nn as nn

from feed_forward import FeedForward as MLP
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention as CausalSelfAttention


class TransformerBlock(nn.Module):
    """ communication followed by computation """

    def __init__(self, d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True, causal=True):
        # d_model: embedding dimension, num_heads: the number of heads we'd like
        super().__init__()
        self.norm1 = LayerNorm(d_model)
        self.attention = CausalSelfAttention(d_model, d_model, context_length, dropout, num_heads, causal=causal)
        self.norm2 = LayerNorm(d_model)
        self.feed_forward = MLP(d_model, d_ff, dropout)
        self.resid_dropout = nn.Dropout(dropout)
        self.pre = norm_first

    def forward(self, x):
        if not self.pre:
            # "Attention is all you need"
            x = self.norm1(x + self.resid_dropout(self.attention(x)))
            return self.norm2(x + self.resid_dropout(self.feed_forward(x)))
        x = x + self.resid_dropout(self.attention(self.norm1(x)))
        x = x + self.resid_dropout(self.feed_forward(self.norm2(x)))
        return x
