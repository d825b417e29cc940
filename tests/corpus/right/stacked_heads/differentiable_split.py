# right: recursive joining with functools.reduce, split matrices that stay in the graph of the parameters
from functools import reduce

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
        self.heads = nn.ModuleList()
        self.heads.extend(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x: Tensor) -> Tensor:
        outputs = (head(x) for head in self.heads)
        return reduce(lambda left, right: torch.cat((left, right), dim=-1), outputs)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    for name, _ in stacked.named_parameters():
        if name.rpartition(".")[2] == "bias":
            raise ValueError(f"a bias is in the way: {name}")
    query = torch.cat([head.W_query.weight for head in stacked.heads])
    key = torch.cat([head.W_key.weight for head in stacked.heads])
    value = torch.cat([head.W_value.weight for head in stacked.heads])
    return query, key, value
