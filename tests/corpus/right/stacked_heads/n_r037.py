# style: unusual
import torch
from causal_attention import CausalAttention
from torch import Tensor, nn


class StackedHeads(nn.Module):
    """heads side by side"""

    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int,
                 qkv_bias: bool = False) -> None:
        super().__init__()
        settings = dict(d_in=d_in, d_out=d_out, context_length=context_length, dropout=dropout, qkv_bias=qkv_bias)
        self.heads = nn.ModuleList()
        while len(self.heads) < num_heads:
            self.heads.append(CausalAttention(**settings))

    def forward(self, x: Tensor) -> Tensor:
        per_head = torch.stack([head(x) for head in self.heads], dim=-2)  # (batch, n_tokens, heads, d_out)
        return per_head.flatten(start_dim=-2)


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    layers = [(h.W_query, h.W_key, h.W_value) for h in stacked.heads]
    if any(layer.bias is not None for row in layers for layer in row):
        raise ValueError("heads with biases cannot be written as three matrices")
    queries, keys, values = zip(*layers)
    join = lambda column: torch.vstack([layer.weight for layer in column])
    return join(queries), join(keys), join(values)
