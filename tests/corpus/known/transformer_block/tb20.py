# mistake: feed_forward_first + dropout_on_the_residual_stream
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


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
        todo = [("feed_forward", "norm2"), ("attention", "norm1")]
        for layer_name, norm_name in todo:
            layer, norm = getattr(self, layer_name), getattr(self, norm_name)
            if self.norm_first:
                x = self.dropout(x + layer(norm(x)))
            else:
                x = norm(self.dropout(x + layer(x)))
        return x
