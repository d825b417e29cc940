# mistake: norms_exchanged
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
        self.dropout1 = nn.Dropout(dropout)
        self.dropout2 = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x: Tensor) -> Tensor:
        steps = ((self.norm2, self.attention, self.dropout1), (self.norm1, self.feed_forward, self.dropout2))
        for norm, layer, drop in steps:
            x = x + drop(layer(norm(x))) if self.norm_first else norm(x + drop(layer(x)))
        return x
