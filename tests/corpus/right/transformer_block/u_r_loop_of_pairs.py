# right: a loop over the two pairs of norm and sub-layer, with a pass-through function in the place that has no norm.
import torch
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


def _same(t: Tensor) -> Tensor:
    return t


class TransformerBlock(nn.Module):
    def __init__(
        self, d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True, causal=True
    ) -> None:
        super().__init__()
        self.add_module("norm1", LayerNorm(d_model))
        self.add_module("norm2", LayerNorm(d_model))
        self.add_module("feed_forward", FeedForward(d_model, d_ff, dropout))
        self.add_module(
            "attention",
            MultiHeadAttention(
                d_in=d_model,
                d_out=d_model,
                context_length=context_length,
                dropout=dropout,
                num_heads=num_heads,
                causal=causal,
            ),
        )
        self.drop = nn.Dropout(dropout)
        self.norm_first = bool(norm_first)

    def forward(self, x: Tensor) -> Tensor:
        stream = x
        for norm, part in ((self.norm1, self.attention), (self.norm2, self.feed_forward)):
            before, after = (norm, _same) if self.norm_first else (_same, norm)
            stream = after(torch.add(self.drop(part(before(stream))), stream))
        return stream
