# mistake: d_out_divided_by_heads
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
        head_dim = max(1, d_out // num_heads)
        self.heads = nn.ModuleList(
            CausalAttention(d_in, head_dim, context_length, dropout, qkv_bias=qkv_bias)
            for _ in range(num_heads)
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([head(x) for head in self.heads], dim=-1)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    for head in stacked.heads:
        if head.W_query.bias is not None:
            raise ValueError("no biases")
    return (
        torch.cat([head.W_query.weight for head in stacked.heads], dim=0),
        torch.cat([head.W_key.weight for head in stacked.heads], dim=0),
        torch.cat([head.W_value.weight for head in stacked.heads], dim=0),
    )
