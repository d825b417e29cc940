import torch.nn.functional as F
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


class TransformerBlock(nn.Module):
    def __init__(
        self, d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True, causal=True
    ):
        super().__init__()
        self.attention = MultiHeadAttention(
            d_in=d_model,
            d_out=d_model,
            context_length=context_length,
            dropout=dropout,
            num_heads=num_heads,
            causal=causal,
        )
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
        self.p = dropout
        self.norm_first = norm_first

    def forward(self, x: Tensor) -> Tensor:
        identity = nn.Identity()
        for part, norm in ((self.attention, self.norm1), (self.feed_forward, self.norm2)):
            before, after = (norm, identity) if self.norm_first else (identity, norm)
            x = after(x.add(F.dropout(part(before(x)), self.p, self.training)))
        return x
