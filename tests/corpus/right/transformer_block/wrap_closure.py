# note: the two orders are closures chosen by match, sub-layers run in a loop over pairs, and the drop is written by hand with a bernoulli mask
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
        parts = {
            "norm1": LayerNorm(d_model),
            "norm2": LayerNorm(d_model),
            "attention": MultiHeadAttention(
                d_model, d_model, context_length, dropout, num_heads, causal=causal
            ),
            "feed_forward": FeedForward(d_model, d_ff, dropout),
        }
        for name, part in parts.items():
            self.add_module(name, part)
        self.rate, self.norm_first = dropout, norm_first

    def thin(self, t: Tensor) -> Tensor:
        match self.training, self.rate:
            case (False, _) | (_, 0):
                return t
            case _, rate if rate >= 1:
                return torch.zeros_like(t)
            case _, rate:
                return t * torch.empty(t.shape, device=t.device).bernoulli_(1 - rate).to(t.dtype) / (1 - rate)

    def forward(self, x: Tensor) -> Tensor:
        for part, norm in ((self.attention, self.norm1), (self.feed_forward, self.norm2)):
            x = x + self.thin(part(norm(x))) if self.norm_first else norm(x + self.thin(part(x)))
        return x
