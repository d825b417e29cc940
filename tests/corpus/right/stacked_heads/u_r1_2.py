# right: heads written into a list by index, outputs stacked on a new axis and flattened, weights stacked likewise
import torch
from causal_attention import CausalAttention
from torch import Tensor, nn

PARTS = ("W_query", "W_key", "W_value")


class StackedHeads(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False) -> None:
        super().__init__()
        arguments = (d_in, d_out, context_length, dropout, qkv_bias)
        self.heads = nn.ModuleList()
        while len(self.heads) < num_heads:
            self.heads.append(CausalAttention(*arguments))

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack(tuple(head(x) for head in self.heads), dim=-2).flatten(start_dim=-2)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    layers = {part: [getattr(head, part) for head in stacked.heads] for part in PARTS}
    if any(layer.bias is not None for column in layers.values() for layer in column):
        raise ValueError("matrices have no room for the biases of these heads")
    with torch.no_grad():
        stacks = (torch.stack([layer.weight for layer in layers[part]]) for part in PARTS)
        query, key, value = (stack.flatten(0, 1) for stack in stacks)
    return query, key, value
