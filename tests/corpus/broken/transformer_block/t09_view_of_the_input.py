# exercise: transformer_block
# promise: x may be a view that is not contiguous (x.view fails)
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
        self.norm_first = norm_first

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        residual = x.view(b * n, d)
        if self.norm_first:
            h = residual + self.dropout(self.attention(self.norm1(x))).reshape(b * n, d)
            h = h + self.dropout(self.feed_forward(self.norm2(h)))
        else:
            h = self.norm1(residual + self.dropout(self.attention(x)).reshape(b * n, d))
            h = self.norm2(h + self.dropout(self.feed_forward(h)))
        return h.view(b, n, d)
