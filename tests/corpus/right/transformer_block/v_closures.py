# right: sub-layers are driven by one generic loop, with F.dropout instead of a module
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn
from torch.nn import functional


class TransformerBlock(nn.Module):
    def __init__(self, d_model: int, num_heads: int, d_ff: int, context_length: int,
                 dropout: float = 0.0, norm_first: bool = True, causal: bool = True) -> None:
        super().__init__()
        parts = dict(
            attention=MultiHeadAttention(d_model, d_model, context_length, dropout, num_heads,
                                         causal=causal),
            feed_forward=FeedForward(d_model, d_ff, dropout),
            norm1=LayerNorm(d_model),
            norm2=LayerNorm(d_model),
        )
        for name, part in parts.items():
            self.add_module(name, part)
        self.rate, self.norm_first = dropout, norm_first

    def forward(self, x: Tensor) -> Tensor:
        def thinned(t):
            return functional.dropout(t, p=self.rate, training=self.training)

        for name, norm in (("attention", self.norm1), ("feed_forward", self.norm2)):
            layer = getattr(self, name)
            x = x + thinned(layer(norm(x))) if self.norm_first else norm(x + thinned(layer(x)))
        return x

