# mistake: split_interleaved + biases_dropped
import torch
from causal_attention import CausalAttention
from torch import Tensor, nn


class StackedHeads(nn.Module):
    """num_heads causal attentions, side by side."""

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        settings = dict(
            d_in=d_in,
            d_out=d_out,
            context_length=context_length,
            dropout=dropout,
            qkv_bias=qkv_bias,
        )
        self.heads = nn.ModuleList(CausalAttention(**settings) for _ in range(num_heads))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, n_tokens, d_in) -> (batch, n_tokens, num_heads * d_out)"""
        context = torch.stack([h(x) for h in self.heads], dim=2)
        return context.flatten(start_dim=2)


def _collect(stacked: StackedHeads, name: str) -> Tensor:
    layers = [getattr(h, name) for h in stacked.heads]
    return torch.stack([layer.weight for layer in layers], dim=1).flatten(0, 1).detach().clone()


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    return _collect(stacked, "W_query"), _collect(stacked, "W_key"), _collect(stacked, "W_value")
