# mistake: normal_start
import math

import torch
from torch import Tensor, nn


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    d_out = q.size(-1)
    s = torch.matmul(q, k.mT) / math.sqrt(d_out)
    w = nn.functional.softmax(s, dim=-1)
    return torch.matmul(w, v)


class SelfAttentionV1(nn.Module):
    """Parameters of shape (d_in, d_out)."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.d_in = d_in
        self.d_out = d_out
        self.W_query = nn.Parameter(torch.randn((d_in, d_out)))
        self.W_key = nn.Parameter(torch.randn((d_in, d_out)))
        self.W_value = nn.Parameter(torch.randn((d_in, d_out)))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return attend(q, k, v)


class SelfAttentionV2(nn.Module):
    """Linear layers."""

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.d_in = d_in
        self.d_out = d_out
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        return attend(q, k, v)


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    names = ["W_query", "W_key", "W_value"]
    for name in names:
        if getattr(source_v2, name).bias is not None:
            raise ValueError(f"{name} has a bias")
    for name in names:
        weight = getattr(source_v2, name).weight
        getattr(target_v1, name).data = weight.detach().clone().t().contiguous()
