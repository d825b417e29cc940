"""Reference solution: self-attention with learned projections, twice, and a copy of weights."""

import torch
from torch import Tensor, nn


def scaled_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Return the values, weighted by how well their keys match each query.

    All four are (..., n_tokens, d_out). What both classes share is written once, here.
    """
    # --- solution
    d_out = keys.shape[-1]
    scores = queries @ keys.transpose(-2, -1) / d_out**0.5  # (..., n_tokens, n_tokens)
    weights = torch.softmax(scores, dim=-1)  # (..., n_tokens, n_tokens)
    return weights @ values  # (..., n_tokens, d_out)
    # --- end


class SelfAttentionV1(nn.Module):
    """Self-attention whose projections are plain parameters of shape (d_in, d_out)."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        # --- solution
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))  # (d_in, d_out)
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))  # (d_in, d_out)
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))  # (d_in, d_out)
        # --- end

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., n_tokens, d_in) to (..., n_tokens, d_out)."""
        # --- solution
        queries = x @ self.W_query  # (..., n_tokens, d_out)
        keys = x @ self.W_key  # (..., n_tokens, d_out)
        values = x @ self.W_value  # (..., n_tokens, d_out)
        return scaled_attention(queries, keys, values)  # (..., n_tokens, d_out)
        # --- end


class SelfAttentionV2(nn.Module):
    """Self-attention whose projections are linear layers from d_in to d_out."""

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        # --- solution
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        # --- end

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., n_tokens, d_in) to (..., n_tokens, d_out)."""
        # --- solution
        queries = self.W_query(x)  # (..., n_tokens, d_out)
        keys = self.W_key(x)  # (..., n_tokens, d_out)
        values = self.W_value(x)  # (..., n_tokens, d_out)
        return scaled_attention(queries, keys, values)  # (..., n_tokens, d_out)
        # --- end


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    """Copy the weights of `source_v2` into `target_v1`, so that both give the same outputs.

    Raises ValueError if the source has biases.
    """
    # --- solution
    if source_v2.W_query.bias is not None:
        raise ValueError("a V1 has no biases, so it cannot take over those of the source")
    with torch.no_grad():  # a copy of numbers is no part of what is learned
        for name in ("W_query", "W_key", "W_value"):
            weight = getattr(source_v2, name).weight  # (d_out, d_in)
            getattr(target_v1, name).copy_(weight.T)  # (d_in, d_out)
    # --- end
