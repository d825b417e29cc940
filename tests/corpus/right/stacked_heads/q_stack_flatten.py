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
        self.has_bias = qkv_bias
        self.heads = nn.ModuleList()
        while len(self.heads) < num_heads:
            self.heads.append(CausalAttention(d_in, d_out, context_length, dropout, qkv_bias))

    def forward(self, x: Tensor) -> Tensor:
        by_head = torch.stack([head(x) for head in self.heads])
        return torch.einsum("hbnd->bnhd", by_head).flatten(start_dim=2)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    if stacked.has_bias:
        raise ValueError("three matrices have no room for biases")

    def all_heads(name: str) -> Tensor:
        return torch.stack([getattr(head, name).weight for head in stacked.heads]).flatten(0, 1)

    return all_heads("W_query"), all_heads("W_key"), all_heads("W_value")
