# Baustein: Aufmerksamkeit, dann Feed-Forward, je mit Norm und Residuum
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
        self.attention = MultiHeadAttention(d_model, d_model, context_length, dropout, num_heads, False, causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.drop1 = nn.Dropout(dropout)
        self.drop2 = nn.Dropout(dropout)
        self._weg = self._vorher if norm_first else self._nachher

    def _vorher(self, x: Tensor) -> Tensor:
        mitte = torch.add(x, self.drop1(self.attention(self.norm1(x))))
        return torch.add(mitte, self.drop2(self.feed_forward(self.norm2(mitte))))

    def _nachher(self, x: Tensor) -> Tensor:
        mitte = self.norm1(torch.add(x, self.drop1(self.attention(x))))
        return self.norm2(torch.add(mitte, self.drop2(self.feed_forward(mitte))))

    def forward(self, x: Tensor) -> Tensor:
        return self._weg(x)
