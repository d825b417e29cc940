# right: functional, one product with all three matrices side by side, new parameters in the copy
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def mix(all_three: Tensor) -> Tensor:
    """Attend with queries, keys and values that stand side by side in the last axis."""
    q, k, v = all_three.chunk(3, dim=-1)
    scores = torch.matmul(q, k.mT).div(math.sqrt(q.shape[-1]))
    raised = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return torch.matmul(raised / raised.sum(dim=-1, keepdim=True), v)


class SelfAttentionV1(nn.Module):
    """Projections are plain parameters."""

    W_query: nn.Parameter
    W_key: nn.Parameter
    W_value: nn.Parameter

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query, self.W_key, self.W_value = (
            nn.Parameter(torch.empty(d_in, d_out).uniform_()) for _ in range(3)
        )

    def forward(self, x: Tensor) -> Tensor:
        return mix(x @ torch.cat([self.W_query, self.W_key, self.W_value], dim=1))


class SelfAttentionV2(nn.Module):
    """Projections are linear layers."""

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query, self.W_key, self.W_value = (
            nn.Linear(in_features=d_in, out_features=d_out, bias=qkv_bias) for _ in range(3)
        )

    def forward(self, x: Tensor) -> Tensor:
        layers = [self.W_query, self.W_key, self.W_value]
        weight = torch.cat([layer.weight for layer in layers])
        biases = [layer.bias for layer in layers if layer.bias is not None]
        return mix(F.linear(x, weight, torch.cat(biases) if biases else None))


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    """Copy the weights of a V2 without biases into a V1."""
    if {name for name, _ in source_v2.named_parameters()} & {f"W_{x}.bias" for x in ("query", "key", "value")}:
        raise ValueError("the source has biases")
    target_v1.W_query = nn.Parameter(source_v2.W_query.weight.detach().clone().T)
    target_v1.W_key = nn.Parameter(source_v2.W_key.weight.detach().clone().T)
    target_v1.W_value = nn.Parameter(source_v2.W_value.weight.detach().clone().T)
