# exercise: transformer_block
# promise: the block supports .to(dtype), including bfloat16 (own dropout in float32: training in bfloat16 changes the dtype)
import torch
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


class Drop(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, t):
        if not self.training or self.rate == 0:
            return t
        if self.rate >= 1:
            return torch.zeros_like(t)
        return t * (torch.rand(t.shape, device=t.device) > self.rate).float() / (1 - self.rate)


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True, causal=True):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, d_model, context_length, dropout, num_heads, causal=causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.drop = Drop(dropout)
        self.norm_first = norm_first

    def forward(self, x: Tensor) -> Tensor:
        if self.norm_first:
            x = x + self.drop(self.attention(self.norm1(x)))
            return (x + self.drop(self.feed_forward(self.norm2(x))))
        x = self.norm1(x + self.drop(self.attention(x)))
        return self.norm2(x + self.drop(self.feed_forward(x)))
