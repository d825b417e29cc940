# right: the twin of one with a mistake, nopermute
# seen: jsbaan's from-scratch tutorial, pull 6, and ajhalthor issue 8: the stacked head outputs are reshaped without moving the head axis behind the tokens first, which mixes tokens and heads.
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
        batch, n_tokens, _ = x.shape
        y = torch.stack([head(x) for head in self.heads], dim=1)  # (batch, heads, tokens, d_out)
        y = y.permute(0, 2, 1, 3)
        return y.reshape(batch, n_tokens, -1)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    layers = [(h.W_query, h.W_key, h.W_value) for h in stacked.heads]
    if any(layer.bias is not None for head in layers for layer in head):
        raise ValueError("the heads have biases")
    q, k, v = (torch.cat([layer.weight for layer in same], dim=0) for same in zip(*layers))
    return q, k, v
