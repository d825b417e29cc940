# mistake: reshaped_for_transposed
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
        for _ in range(num_heads):
            self.heads.append(
                CausalAttention(d_in, d_out, context_length, dropout, qkv_bias=qkv_bias)
            )

    def forward(self, x: Tensor) -> Tensor:
        return torch.concat(tuple(head(x) for head in self.heads), dim=-1)


def _join(layers: list[nn.Linear]) -> Tensor:
    wide = torch.cat([layer.weight.detach().T for layer in layers], dim=1)
    d_in, total = wide.shape
    return wide.reshape(total, d_in)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    heads = list(stacked.heads)
    if heads[0].W_query.bias is not None:
        raise ValueError("made with qkv_bias=True")
    return _join([h.W_query for h in heads]), _join([h.W_key for h in heads]), _join([h.W_value for h in heads])
