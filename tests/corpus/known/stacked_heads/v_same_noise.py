# mistake: one_mask_for_the_heads
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
            self.heads.append(CausalAttention(d_in, d_out, context_length, dropout, qkv_bias))

    def forward(self, x: Tensor) -> Tensor:
        start = torch.get_rng_state()
        outputs = []
        for head in self.heads:
            torch.set_rng_state(start)
            outputs.append(head(x))
        return torch.cat(outputs, dim=-1)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    if stacked.heads[0].W_key.bias is not None:
        raise ValueError("biases are not supported")
    stack = lambda name: torch.cat([getattr(head, name).weight for head in stacked.heads], dim=0)
    return stack("W_query"), stack("W_key"), stack("W_value")
