# mistake: scaled_by_root_of_d_in
import torch
from torch import Tensor, nn


def scaled_attention(queries: Tensor, keys: Tensor, values: Tensor, size: int) -> Tensor:
    """Return the values, weighted by how well their keys match each query."""
    scores = queries @ keys.transpose(-2, -1) / size**0.5
    return torch.softmax(scores, dim=-1) @ values


class SelfAttentionV1(nn.Module):
    """Self-attention whose projections are plain parameters."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x: Tensor) -> Tensor:
        return scaled_attention(x @ self.W_query, x @ self.W_key, x @ self.W_value, x.shape[-1])


class SelfAttentionV2(nn.Module):
    """Self-attention whose projections are linear layers."""

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x: Tensor) -> Tensor:
        return scaled_attention(self.W_query(x), self.W_key(x), self.W_value(x), x.shape[-1])


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    """Copy the weights of a V2 without biases into a V1."""
    names = ("W_query", "W_key", "W_value")
    for name in names:
        if getattr(source_v2, name).bias is not None:
            raise ValueError("the source has biases")
    with torch.no_grad():
        for name in names:
            getattr(target_v1, name).copy_(getattr(source_v2, name).weight.T)
