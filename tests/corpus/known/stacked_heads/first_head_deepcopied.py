# mistake: heads_start_alike
import copy

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
        first = CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)
        # copies, so that every head has weights of its own
        self.heads = nn.ModuleList([first] + [copy.deepcopy(first) for _ in range(num_heads - 1)])

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([head(x) for head in self.heads], -1)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    if any("bias" in name for name in stacked.state_dict()):
        raise ValueError("biases")
    with torch.no_grad():
        return tuple(
            torch.cat([getattr(head, name).weight for head in stacked.heads])
            for name in ("W_query", "W_key", "W_value")
        )
