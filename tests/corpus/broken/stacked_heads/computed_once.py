# broken: "These are the weights of three linear layers that compute the queries, keys and values": the copies of the first call are kept and returned again after the weights have changed
import weakref

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


_known: "weakref.WeakKeyDictionary" = weakref.WeakKeyDictionary()


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    if stacked.heads[0].W_query.bias is not None:
        raise ValueError("the heads have biases")
    if stacked in _known:
        return _known[stacked]
    W_query = torch.cat([head.W_query.weight for head in stacked.heads])
    W_key = torch.cat([head.W_key.weight for head in stacked.heads])
    W_value = torch.cat([head.W_value.weight for head in stacked.heads])
    _known[stacked] = (W_query.detach(), W_key.detach(), W_value.detach())
    return _known[stacked]
