# mistake: second_residual_from_the_original_x + causal_flag_lost
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


class TransformerBlock(nn.Module):
    def __init__(self, d_model: int, num_heads: int, d_ff: int, context_length: int, dropout: float = 0.0, norm_first: bool = True, causal: bool = True) -> None:
        super().__init__()
        options = {"dropout": dropout, "num_heads": num_heads}
        self.attention = MultiHeadAttention(d_model, d_model, context_length, **options)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        options.update(norm_first=norm_first, causal=causal)
        self.options = options

    def forward(self, x: Tensor) -> Tensor:
        if self.options["norm_first"]:
            a = x + self.dropout(self.attention(self.norm1(x)))
            b = x + self.dropout(self.feed_forward(self.norm2(a)))
            return b
        a = self.norm1(x + self.dropout(self.attention(x)))
        return self.norm2(x + self.dropout(self.feed_forward(a)))
