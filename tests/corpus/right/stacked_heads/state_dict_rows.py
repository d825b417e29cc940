# note: the list is filled by add_module, outputs are written into slices of a fresh tensor, and the matrices are read from the state_dict
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
        heads = nn.ModuleList()
        for i in range(num_heads):
            heads.add_module(str(i), CausalAttention(d_in, d_out, context_length, dropout, qkv_bias))
        self.register_module("heads", heads)
        self.d_out = d_out

    def forward(self, x: Tensor) -> Tensor:
        out = x.new_empty(*x.shape[:-1], len(self.heads) * self.d_out)
        for i, head in enumerate(self.heads):
            out[..., i * self.d_out : (i + 1) * self.d_out] = head(x)
        return out


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    state = stacked.state_dict()
    if any(f"heads.{i}.{w}.bias" in state for i in range(len(stacked.heads)) for w in ("W_query", "W_key", "W_value")):
        raise ValueError("biases have no place in three matrices")

    def rows(name: str) -> Tensor:
        return torch.cat([state[f"heads.{i}.{name}.weight"].clone() for i in range(len(stacked.heads))])

    return rows("W_query"), rows("W_key"), rows("W_value")
