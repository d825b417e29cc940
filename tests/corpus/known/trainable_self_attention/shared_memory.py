# mistake: storage_shared
# copy_weights gives V1 transposed views of the weights of V2, so a later change of one module changes the other
import math

import torch
from torch import Tensor, nn

NAMES = ("W_query", "W_key", "W_value")


class SelfAttentionV1(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        for name in NAMES:
            setattr(self, name, nn.Parameter(torch.rand(d_in, d_out)))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        return scores.softmax(-1) @ v


class SelfAttentionV2(nn.Module):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        for name in NAMES:
            setattr(self, name, nn.Linear(d_in, d_out, bias=qkv_bias))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        return scores.softmax(-1) @ v


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    for name in NAMES:
        if getattr(source_v2, name).bias is not None:
            raise ValueError(f"{name} has a bias")
    for name in NAMES:
        setattr(target_v1, name, nn.Parameter(getattr(source_v2, name).weight.detach().T))
