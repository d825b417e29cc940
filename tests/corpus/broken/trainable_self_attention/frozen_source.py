# broken: "The target can still be trained": after copying from a source whose parameters are frozen, those of the target are frozen, too
import torch
from torch import Tensor, nn


def scaled_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Return the values, weighted by how well their keys match each query."""
    scores = queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ values


class SelfAttentionV1(nn.Module):
    """Self-attention whose projections are plain parameters."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x: Tensor) -> Tensor:
        return scaled_attention(x @ self.W_query, x @ self.W_key, x @ self.W_value)


class SelfAttentionV2(nn.Module):
    """Self-attention whose projections are linear layers."""

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x: Tensor) -> Tensor:
        return scaled_attention(self.W_query(x), self.W_key(x), self.W_value(x))


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    """Copy the weights of a V2 without biases into a V1."""
    names = ("W_query", "W_key", "W_value")
    for name in names:
        if getattr(source_v2, name).bias is not None:
            raise ValueError("the source has biases")
    for name in names:
        weight = getattr(source_v2, name).weight
        copied = weight.detach().T.clone()
        setattr(target_v1, name, nn.Parameter(copied, requires_grad=weight.requires_grad))
