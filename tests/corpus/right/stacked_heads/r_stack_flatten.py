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
        per_head = torch.stack([head(x) for head in self.heads], dim=-2)  # (b, n, heads, d_out)
        return per_head.flatten(start_dim=-2)


def _joined(stacked: StackedHeads, name: str) -> Tensor:
    layers = [head.get_submodule(name) for head in stacked.heads]
    if any(layer.bias is not None for layer in layers):
        raise ValueError(f"{name} has a bias")
    return torch.stack([layer.weight for layer in layers]).flatten(0, 1)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    return _joined(stacked, "W_query"), _joined(stacked, "W_key"), _joined(stacked, "W_value")
