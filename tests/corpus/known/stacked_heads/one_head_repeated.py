# mistake: one_head_shared
# the list holds the same head num_heads times ([head] * num_heads), so all heads share their weights
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
        self.qkv_bias = qkv_bias
        self.heads = nn.ModuleList(
            [CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)] * num_heads
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([head(x) for head in self.heads], dim=-1)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    if stacked.qkv_bias:
        raise ValueError("biases")
    W_query = torch.cat([h.W_query.weight for h in stacked.heads], dim=0)
    W_key = torch.cat([h.W_key.weight for h in stacked.heads], dim=0)
    W_value = torch.cat([h.W_value.weight for h in stacked.heads], dim=0)
    return W_query, W_key, W_value
