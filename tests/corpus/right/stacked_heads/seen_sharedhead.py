# right: the twin of one with a mistake, sharedhead
# seen: linkedin/Liger-Kernel pull 269: the list of heads is one module times num_heads, so all heads are the same object with the same weights.
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
            [CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)]
        )

    def forward(self, x: Tensor) -> Tensor:
        outputs = tuple(head(x) for head in self.heads)
        return torch.concat(outputs, dim=2)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    names = ("W_query", "W_key", "W_value")
    for head in stacked.heads:
        for name in names:
            if getattr(head, name).bias is not None:
                raise ValueError(f"{name} has a bias")
    q, k, v = (torch.vstack([getattr(h, n).weight for h in stacked.heads]) for n in names)
    return q, k, v
