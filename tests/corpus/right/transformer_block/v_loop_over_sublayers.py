# right: one loop over both sub-layers, dropout by hand with a fresh mask for each, drawn with torch.rand as a where
import torch
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


class TransformerBlock(nn.Module):
    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        context_length: int,
        dropout: float = 0.0,
        norm_first: bool = True,
        causal: bool = True,
    ) -> None:
        super().__init__()
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.attention = MultiHeadAttention(
            d_model, d_model, context_length, dropout, num_heads, causal=causal
        )
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.rate, self.norm_first = dropout, norm_first

    def _thin(self, y: Tensor) -> Tensor:
        if not self.training:
            return y
        keep = 1 - self.rate
        u = torch.rand(y.shape, device=y.device, dtype=torch.float64)
        return torch.where(u < keep, y / (keep if keep > 0 else 1), torch.zeros_like(y))

    def forward(self, x: Tensor) -> Tensor:
        for norm, layer in ((self.norm1, self.attention), (self.norm2, self.feed_forward)):
            if self.norm_first:
                x = x + self._thin(layer(norm(x)))
            else:
                x = norm(x + self._thin(layer(x)))
        return x
