# right: the output and the three matrices are allocated first and filled slice by slice
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
        args = (d_in, d_out, context_length, dropout, qkv_bias)
        self.heads = nn.ModuleList(CausalAttention(*args) for _ in range(num_heads))
        self.d_out = d_out

    def forward(self, x: Tensor) -> Tensor:
        joined = x.new_zeros(x.shape[0], x.shape[1], len(self.heads) * self.d_out)
        for i, head in enumerate(self.heads):
            joined[..., i * self.d_out : (i + 1) * self.d_out] = head(x)
        return joined


@torch.no_grad()
def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    layers = [(head.W_query, head.W_key, head.W_value) for head in stacked.heads]
    if any(layer.bias is not None for row in layers for layer in row):
        raise ValueError("the heads have biases")
    d_out, d_in = layers[0][0].weight.shape
    result = layers[0][0].weight.new_empty(3, len(layers), d_out, d_in)
    for i, row in enumerate(layers):
        for j, layer in enumerate(row):
            result[j, i].copy_(layer.weight)
    return tuple(result.reshape(3, len(layers) * d_out, d_in).unbind(0))
