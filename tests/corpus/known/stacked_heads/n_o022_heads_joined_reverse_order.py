# mistake: heads_in_reverse + split_in_reverse
import torch
from causal_attention import CausalAttention
from torch import Tensor, nn


class StackedHeads(nn.Module):
    """Several causal attentions of size d_out each, whose outputs are joined along the features."""

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
        self.d_out = d_out
        self.heads = nn.ModuleList(
            [CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)]
        )

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_in) to (batch, n_tokens, num_heads * d_out)."""
        joined = x.new_empty(x.shape[0], x.shape[1], 0)
        for head in self.heads:
            joined = torch.cat([head(x), joined], dim=-1)
        return joined


def _collect(stacked: StackedHeads, name: str) -> Tensor:
    rows = None
    for head in stacked.heads:
        layer = getattr(head, name)
        if layer.bias is not None:
            raise ValueError(f"{name} has a bias")
        rows = layer.weight if rows is None else torch.cat([layer.weight, rows], dim=0)
    return rows


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    """Return W_query, W_key and W_value of all heads, (num_heads * d_out, d_in) each."""
    return _collect(stacked, "W_query"), _collect(stacked, "W_key"), _collect(stacked, "W_value")
