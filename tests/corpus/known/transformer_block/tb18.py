# mistake: one_norm_shared + writes_into_argument
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, no_grad, nn


class TransformerBlock(nn.Module):
    def __init__(self, d_model: int, num_heads: int, d_ff: int, context_length: int, dropout: float = 0.0, norm_first: bool = True, causal: bool = True) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(d_model, d_model, context_length, dropout, num_heads, causal=causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x: Tensor) -> Tensor:
        norm = self.norm1
        keep = x.clone()
        update = self.dropout(self.attention(norm(keep) if self.norm_first else keep))
        with no_grad():
            x.add_(update)
        h = keep + update
        if self.norm_first:
            return h + self.dropout(self.feed_forward(norm(h)))
        h = norm(h)
        return norm(h + self.dropout(self.feed_forward(h)))
