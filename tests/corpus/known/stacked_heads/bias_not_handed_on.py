# mistake: bias_ignored
# qkv_bias is not handed on to the heads, so they never have biases
import torch
from causal_attention import CausalAttention
from torch import Tensor, nn


class StackedHeads(nn.Module):
    """Several causal attentions side by side."""

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
        self.num_heads = num_heads
        self.qkv_bias = qkv_bias
        self.heads = nn.ModuleList(
            [CausalAttention(d_in, d_out, context_length, dropout) for _ in range(num_heads)]
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.concat([self.heads[i](x) for i in range(self.num_heads)], dim=-1)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    if stacked.qkv_bias:
        raise ValueError("the heads were made with biases")
    parts = [(h.W_query.weight, h.W_key.weight, h.W_value.weight) for h in stacked.heads]
    queries, keys, values = zip(*parts)
    return torch.vstack(queries), torch.vstack(keys), torch.vstack(values)
