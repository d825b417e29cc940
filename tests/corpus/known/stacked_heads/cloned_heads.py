# mistake: heads_start_alike
# the heads are deep copies of the first one, so all start with the same weights
import copy

import torch
from causal_attention import CausalAttention
from torch import Tensor, nn


def clones(module: nn.Module, n: int) -> nn.ModuleList:
    """Produce n identical layers."""
    return nn.ModuleList([copy.deepcopy(module) for _ in range(n)])


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
        self.heads = clones(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias), num_heads
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat(tuple(head(x) for head in self.heads), -1)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    for head in stacked.heads:
        for layer in (head.W_query, head.W_key, head.W_value):
            if layer.bias is not None:
                raise ValueError("three matrices have no room for biases")
    q = torch.cat([head.W_query.weight.detach() for head in stacked.heads])
    k = torch.cat([head.W_key.weight.detach() for head in stacked.heads])
    v = torch.cat([head.W_value.weight.detach() for head in stacked.heads])
    return q, k, v
