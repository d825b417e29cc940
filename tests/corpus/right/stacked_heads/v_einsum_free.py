# right: heads are filled in by append, outputs are written by torch.stack and flatten, split_weights concatenates the live weights with their graph
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
        while len(self.heads) < num_heads:
            self.heads.append(CausalAttention(d_in, d_out, context_length, dropout, qkv_bias))

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([head(x) for head in self.heads], dim=-2).flatten(-2)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    names = ("W_query", "W_key", "W_value")
    if any(getattr(head, name).bias is not None for head in stacked.heads for name in names):
        raise ValueError("there is no room for biases")
    return tuple(torch.cat([getattr(h, name).weight for h in stacked.heads]) for name in names)
