# mistake: scaled_by_root_of_d_in
# the scores are divided by the square root of d_in and not of d_out
import torch
import torch.nn as nn
from torch import Tensor


def attend(q: Tensor, k: Tensor, v: Tensor, d: int) -> Tensor:
    s = torch.einsum("...id,...jd->...ij", q, k) * d**-0.5
    return torch.einsum("...ij,...jd->...id", torch.softmax(s, dim=-1), v)


class SelfAttentionV1(nn.Module):
    """x times three matrices."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.d_in = d_in
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x: Tensor) -> Tensor:
        return attend(x.matmul(self.W_query), x.matmul(self.W_key), x.matmul(self.W_value), self.d_in)


class SelfAttentionV2(nn.Module):
    """The same with linear layers."""

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.d_in = d_in
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)

    def forward(self, x: Tensor) -> Tensor:
        return attend(self.W_query(x), self.W_key(x), self.W_value(x), self.d_in)


@torch.no_grad()
def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    if any(layer.bias is not None for layer in source_v2.children()):
        raise ValueError("biases cannot be copied")
    for name, layer in source_v2.named_children():
        getattr(target_v1, name).copy_(layer.weight.t())
