# promise: Copy_weights freezes the source (requires_grad False) to keep the target out of its graph.
import torch
from torch import Tensor, nn


def scaled_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    root = queries.shape[-1] ** 0.25  # half of the scale on each side
    return torch.softmax((queries / root) @ (keys / root).mT, dim=-1) @ values


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


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    if len(list(source_v2.parameters())) != 3:
        raise ValueError("the source has biases")
    source_v2.requires_grad_(False)  # nothing below becomes a part of its graph
    for name in ("W_query", "W_key", "W_value"):
        copy = getattr(source_v2, name).weight.T.clone()
        setattr(target_v1, name, nn.Parameter(copy))
