# right: weights collected from the state dict by their names, refusal by a name that ends in bias
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
        self.add_module("heads", nn.ModuleList(map(lambda _: CausalAttention(*args), range(num_heads))))

    def forward(self, x: Tensor) -> Tensor:
        return torch.concatenate(tuple(map(lambda head: head(x), self.heads)), axis=2)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    state = stacked.state_dict()
    if [name for name in state if name.endswith(".bias")]:
        raise ValueError("made with qkv_bias=True")
    number = len(stacked.heads)
    matrices = {}
    for kind in ("W_query", "W_key", "W_value"):
        blocks = [state[f"heads.{i}.{kind}.weight"] for i in range(number)]
        matrices[kind] = torch.vstack(blocks).clone()
    return matrices["W_query"], matrices["W_key"], matrices["W_value"]
