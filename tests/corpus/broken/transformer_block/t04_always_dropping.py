# exercise: transformer_block
# promise: in eval mode nothing is dropped (F.dropout is called without self.training)
import torch.nn.functional as F
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True, causal=True):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, d_model, context_length, dropout, num_heads, causal=causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.p = dropout
        self.norm_first = norm_first

    def forward(self, x: Tensor) -> Tensor:
        if self.norm_first:
            h = x + F.dropout(self.attention(self.norm1(x)), self.p)
            return h + F.dropout(self.feed_forward(self.norm2(h)), self.p)
        h = self.norm1(x + F.dropout(self.attention(x), self.p))
        return self.norm2(h + F.dropout(self.feed_forward(h), self.p))
