# mistake: d_out_divided_by_heads
# d_out is taken as the size of all heads together, each head gets d_out // num_heads columns
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
        self.heads = nn.ModuleList()
        for _ in range(num_heads):
            self.heads.append(CausalAttention(d_in, head_dim, context_length, dropout, qkv_bias))

    def forward(self, x: Tensor) -> Tensor:
        outputs = []
        for head in self.heads:
            outputs.append(head(x))
        return torch.cat(outputs, dim=2)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    result = []
    for name in ("W_query", "W_key", "W_value"):
        layers = [getattr(head, name) for head in stacked.heads]
        if any(layer.bias is not None for layer in layers):
            raise ValueError(f"{name} has biases")
        result.append(torch.cat([layer.weight for layer in layers]))
    return tuple(result)
