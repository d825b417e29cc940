# right: einsum and F.linear in one function shared by both, refusal before anything is copied
import torch
import torch.nn.functional as F
from torch import Tensor, nn


def _mix(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    table = torch.einsum("...ie,...je->...ij", q * q.shape[-1] ** -0.5, k)
    return torch.einsum("...ij,...je->...ie", F.softmax(table, dim=-1), v)


class SelfAttentionV1(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query, self.W_key, self.W_value = (
            nn.Parameter(torch.rand(d_in, d_out)) for _ in range(3)
        )

    def forward(self, x: Tensor) -> Tensor:
        return _mix(*(F.linear(x, w.t()) for w in (self.W_query, self.W_key, self.W_value)))


class SelfAttentionV2(nn.Module):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query, self.W_key, self.W_value = (
            nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3)
        )

    def forward(self, x: Tensor) -> Tensor:
        layers = self.W_query, self.W_key, self.W_value
        return _mix(*(F.linear(x, layer.weight, layer.bias) for layer in layers))


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    pairs = [
        (source_v2.W_query, target_v1.W_query),
        (source_v2.W_key, target_v1.W_key),
        (source_v2.W_value, target_v1.W_value),
    ]
    if not all(layer.bias is None for layer, _ in pairs):
        raise ValueError("SelfAttentionV1 has no place for biases")
    for layer, parameter in pairs:
        parameter.data.copy_(layer.weight.data.t())
