# note: functools.partial and reduce, outputs joined by stack and flatten, matrices keep their graph
from functools import partial, reduce

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
        new_head = partial(CausalAttention, d_in, d_out, context_length, dropout, qkv_bias)
        self.heads = reduce(lambda found, _: found.append(new_head()), range(num_heads), nn.ModuleList())

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([*map(lambda head: head(x), self.heads)], dim=-2).flatten(-2)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    trios = [(h.W_query, h.W_key, h.W_value) for h in stacked.heads]
    match [layer for trio in trios for layer in trio if layer.bias is not None]:
        case []:
            q, k, v = (torch.stack([layer.weight for layer in layers]).flatten(0, 1) for layers in zip(*trios))
            return q, k, v
        case biased:
            raise ValueError(f"{len(biased)} layers have a bias")
