# exercise: transformer_block
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
        self.dropout = dropout
        self.norm_first = norm_first

    def thin(self, update: Tensor) -> Tensor:
        if not self.training or self.dropout == 0:
            return update
        if self.dropout == 1:
            return torch.zeros_like(update)
        kept = torch.rand(update.shape, device=update.device) > self.dropout
        return update.masked_fill(~kept, 0.0) / (1.0 - self.dropout)

    def forward(self, x: Tensor) -> Tensor:
        a = self.attention(self.norm1(x) if self.norm_first else x)
        x = x + self.thin(a)
        x = x if self.norm_first else self.norm1(x)
        f = self.feed_forward(self.norm2(x) if self.norm_first else x)
        x = x + self.thin(f)
        return x if self.norm_first else self.norm2(x)
