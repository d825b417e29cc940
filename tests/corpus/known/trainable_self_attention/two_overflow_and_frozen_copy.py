# mistake: naive_softmax + copy_is_frozen
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
        attn_scores = torch.exp(attn_scores / keys.shape[-1] ** 0.5)
        attn_weights = attn_scores / attn_scores.sum(dim=-1, keepdim=True)
        return attn_weights @ values


class SelfAttentionV2(nn.Module):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

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
    # no gradient, it is only a copy
    target_v1.W_query = nn.Parameter(source_v2.W_query.weight.T.clone(), requires_grad=False)
    target_v1.W_key = nn.Parameter(source_v2.W_key.weight.T.clone(), requires_grad=False)
    target_v1.W_value = nn.Parameter(source_v2.W_value.weight.T.clone(), requires_grad=False)
