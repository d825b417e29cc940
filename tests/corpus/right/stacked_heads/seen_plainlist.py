# right: the twin of one with a mistake, plainlist
# seen: pytorch issue 715 and LianpoWang/SLIIF issue 13: the heads are in a plain Python list, so their parameters are not registered with the module.
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
        heads = []
        for _ in range(num_heads):
            heads.append(CausalAttention(d_in, d_out, context_length, dropout, qkv_bias))
        self.heads = nn.ModuleList(heads)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([head(x) for head in self.heads], dim=-1)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    if any(head.W_query.bias is not None for head in stacked.heads):
        raise ValueError("no room for biases")
    q = torch.cat([head.W_query.weight for head in stacked.heads])
    k = torch.cat([head.W_key.weight for head in stacked.heads])
    v = torch.cat([head.W_value.weight for head in stacked.heads])
    return q, k, v
