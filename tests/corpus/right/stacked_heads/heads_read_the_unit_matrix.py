# right: features moved to the front and joined there, weights read off by sending the unit matrix through the layers
import torch
from causal_attention import CausalAttention
from torch import Tensor, nn


class HeadList(nn.ModuleList):
    """A ModuleList that can be called."""

    def forward(self, x: Tensor) -> list[Tensor]:
        return [head(x) for head in self]


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
        self.heads = HeadList(
            [
                CausalAttention(
                    d_in=d_in,
                    d_out=d_out,
                    context_length=context_length,
                    dropout=dropout,
                    qkv_bias=qkv_bias,
                )
                for _ in range(num_heads)
            ]
        )

    def forward(self, x: Tensor) -> Tensor:
        features_first = [out.movedim(-1, 0) for out in self.heads(x)]
        return torch.cat(features_first).movedim(0, -1)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    layers = {
        name: [getattr(head, name) for head in stacked.heads]
        for name in ("W_query", "W_key", "W_value")
    }
    if not all(layer.bias is None for column in layers.values() for layer in column):
        raise ValueError("split_weights is for heads without biases")
    with torch.inference_mode(False), torch.no_grad():
        matrices = []
        for column in layers.values():
            weight = column[0].weight
            unit = torch.eye(weight.shape[1], dtype=weight.dtype, device=weight.device)
            matrices.append(torch.cat([layer(unit) for layer in column], dim=1).t().contiguous())
    return tuple(matrices)
