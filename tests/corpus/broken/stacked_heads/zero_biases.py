# broken: "a module that was made with qkv_bias=True is refused": it is accepted if all its biases are 0
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
                for i in range(num_heads)
            ]
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([head(x) for head in self.heads], dim=-1)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    if any(name.endswith("bias") and bool((p != 0).any()) for name, p in stacked.named_parameters()):
        raise ValueError("the heads have biases")
    W_query = torch.cat([head.W_query.weight for head in stacked.heads], dim=0)
    W_key = torch.cat([head.W_key.weight for head in stacked.heads], dim=0)
    W_value = torch.cat([head.W_value.weight for head in stacked.heads], dim=0)
    return W_query, W_key, W_value
