# promise: Split_weights turns requires_grad of the weights off, so the module changes.
import torch
from causal_attention import CausalAttention
from torch import Tensor, nn


class StackedHeads(nn.Module):
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
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([head(x) for head in self.heads], dim=-1)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    result = []
    for name in ("W_query", "W_key", "W_value"):
        layers = [getattr(head, name) for head in stacked.heads]
        if any(layer.bias is not None for layer in layers):
            raise ValueError("no room for biases")
        result.append(torch.cat([layer.weight.requires_grad_(False) for layer in layers]))
    return result[0], result[1], result[2]
