# broken: "the columns i*d_out to (i+1)*d_out - 1 of x W_query^T are those of head i": the heads are taken in the order of their sorted names, in which heads.10 comes before heads.2
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
            [
                CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)
                for _ in range(num_heads)
            ]
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([head(x) for head in self.heads], dim=-1)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    weights = stacked.state_dict()
    if any(name.endswith(".bias") for name in weights):
        raise ValueError("the heads have biases")

    def joined(layer: str) -> Tensor:
        return torch.cat([weights[name] for name in sorted(weights) if name.endswith(f"{layer}.weight")])

    return joined("W_query"), joined("W_key"), joined("W_value")
