# mistake: the heads are run in the order of their names as text, so head 10 comes before head 2 if there are more than ten
import torch
from causal_attention import CausalAttention
from torch import Tensor, nn


class StackedHeads(nn.Module):
    """Heads are found by their names."""

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
        self.heads = nn.ModuleList([])
        while len(self.heads) < num_heads:
            self.heads.append(CausalAttention(d_in, d_out, context_length, dropout, qkv_bias))

    def in_order(self) -> list[CausalAttention]:
        by_name = dict(self.heads.named_children())
        return [by_name[name] for name in sorted(by_name)]

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([head(x) for head in self.in_order()], dim=-1)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    if stacked.has_bias:
        raise ValueError("Cannot split a module with biases")
    q = torch.cat([head.W_query.weight for head in stacked.in_order()])
    k = torch.cat([head.W_key.weight for head in stacked.in_order()])
    v = torch.cat([head.W_value.weight for head in stacked.in_order()])
    return q.detach(), k.detach(), v.detach()
