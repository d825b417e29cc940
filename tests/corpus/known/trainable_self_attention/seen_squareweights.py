# mistake: copied_without_transpose
# seen: conversion of checkpoints, Hugging Face issue 47031 (see also skyzh/tiny-llm issue 41). Mistake: a weight is transposed only if its shape does not fit, so a square one is copied as it is.
import torch
from torch import Tensor, nn


def scaled_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    scores = queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ values


class SelfAttentionV1(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x: Tensor) -> Tensor:
        return scaled_attention(x @ self.W_query, x @ self.W_key, x @ self.W_value)


class SelfAttentionV2(nn.Module):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x: Tensor) -> Tensor:
        return scaled_attention(self.W_query(x), self.W_key(x), self.W_value(x))


@torch.no_grad()
def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    for name in ("W_query", "W_key", "W_value"):
        layer = getattr(source_v2, name)
        if layer.bias is not None:
            raise ValueError(f"{name} has a bias")
        parameter = getattr(target_v1, name)
        weight = layer.weight
        if weight.shape != parameter.shape:
            weight = weight.T
        parameter.copy_(weight)
