# exercise: transformer_block
# promise: no Python loop runs over batch or tokens
import torch
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
        self.drop = nn.Dropout(dropout)
        self.norm_first = norm_first

    def sentence(self, s: Tensor) -> Tensor:
        if self.norm_first:
            s = s + self.drop(self.attention(self.norm1(s)))
            return s + self.drop(self.feed_forward(self.norm2(s)))
        s = self.norm1(s + self.drop(self.attention(s)))
        return self.norm2(s + self.drop(self.feed_forward(s)))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.sentence(s) for s in x.split(1)])
