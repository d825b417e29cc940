# right: the twin of one with a mistake, interleavedrows
# seen: awslabs/slapo pull 46 and vllm pull 53114: the fused weights are in an interleaved layout: the rows alternate between the heads instead of standing block by block.
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
        make = lambda: CausalAttention(d_in, d_out, context_length, dropout, qkv_bias=qkv_bias)
        self.heads = nn.ModuleList(make() for _ in range(num_heads))

    def forward(self, x: Tensor) -> Tensor:
        parts = []
        for head in self.heads:
            parts.append(head(x))
        return torch.cat(parts, dim=-1)


def _fuse(weights: list[Tensor]) -> Tensor:
    blocks = torch.stack(weights, dim=0)  # (num_heads, d_out, d_in)
    return blocks.flatten(0, 1)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    heads = list(stacked.heads)
    if heads[0].W_query.bias is not None:
        raise ValueError("three matrices cannot hold the biases of the heads")
    return (
        _fuse([head.W_query.weight for head in heads]),
        _fuse([head.W_key.weight for head in heads]),
        _fuse([head.W_value.weight for head in heads]),
    )
