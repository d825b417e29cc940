# right: the output is an empty tensor that each head fills by its slice; split_weights copies numbers without a graph
import torch
from causal_attention import CausalAttention
from torch import Tensor, nn


class StackedHeads(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False) -> None:
        super().__init__()
        self.heads = nn.ModuleList()
        while len(self.heads) < num_heads:
            self.heads.append(CausalAttention(d_in, d_out, context_length, dropout, qkv_bias))

    def forward(self, x: Tensor) -> Tensor:
        size = self.heads[0].W_value.weight.size(0)
        joined = x.new_empty(x.size(0), x.size(1), len(self.heads) * size)
        for i, head in enumerate(self.heads):
            joined[..., i * size : (i + 1) * size] = head(x)
        return joined


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    def rows(name: str) -> Tensor:
        layers = [getattr(head, name) for head in stacked.heads]
        if not all(layer.bias is None for layer in layers):
            raise ValueError("a bias has no place in the matrices")
        return torch.stack([layer.weight.detach() for layer in layers]).flatten(0, 1)

    return rows("W_query"), rows("W_key"), rows("W_value")
