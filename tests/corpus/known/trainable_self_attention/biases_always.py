# mistake: bias_always
"""Trainable self-attention, twice."""
import torch
from torch import Tensor, nn


class SelfAttentionV1(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x: Tensor) -> Tensor:
        keys = x @ self.W_key
        queries = x @ self.W_query
        values = x @ self.W_value
        attn_scores = queries @ keys.transpose(-2, -1)
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        return attn_weights @ values


class SelfAttentionV2(nn.Module):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out)
        self.W_key = nn.Linear(d_in, d_out)
        self.W_value = nn.Linear(d_in, d_out)

    def forward(self, x: Tensor) -> Tensor:
        k = self.W_key(x)
        q = self.W_query(x)
        v = self.W_value(x)
        scores = q @ k.transpose(-2, -1)
        weights = torch.softmax(scores / k.shape[-1] ** 0.5, dim=-1)
        return weights @ v


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    if source_v2.W_query.bias is not None:
        raise ValueError("V1 has no biases")
    with torch.no_grad():
        target_v1.W_query.copy_(source_v2.W_query.weight.T)
        target_v1.W_key.copy_(source_v2.W_key.weight.T)
        target_v1.W_value.copy_(source_v2.W_value.weight.T)
