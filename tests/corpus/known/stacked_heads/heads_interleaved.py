# mistake: features_interleaved
import torch
from causal_attention import CausalAttention
from torch import Tensor, nn


def heads_to_features(stack: Tensor) -> Tensor:
    """(heads, batch, tokens, size) -> (batch, tokens, heads * size)"""
    n_heads, batch, tokens, size = stack.shape
    return stack.permute(1, 2, 3, 0).contiguous().view(batch, tokens, n_heads * size)


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
        self.qkv_bias = bool(qkv_bias)
        heads = []
        for _ in range(num_heads):
            heads += [CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)]
        self.heads = nn.ModuleList(heads)

    def forward(self, x: Tensor) -> Tensor:
        return heads_to_features(torch.stack([head(x) for head in self.heads], dim=0))


def split_weights(stacked: StackedHeads) -> tuple[Tensor, Tensor, Tensor]:
    if stacked.qkv_bias:
        raise ValueError("Three matrices have no room for biases")

    def rows(name: str) -> Tensor:
        weights = torch.stack([getattr(head, name).weight for head in stacked.heads])
        return weights.detach().reshape(-1, weights.shape[-1])

    return rows("W_query"), rows("W_key"), rows("W_value")
