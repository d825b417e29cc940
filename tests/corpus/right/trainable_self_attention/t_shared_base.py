# right: both classes inherit the forward from a base class; the scale is divided over queries and keys
import torch
from torch import Tensor, nn

NAMES = ("W_query", "W_key", "W_value")


class _Attention(nn.Module):
    def project(self, name: str, x: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (self.project(name, x) for name in NAMES)
        fourth = k.size(-1) ** -0.25
        return torch.einsum("...qd,...kd->...qk", q * fourth, k * fourth).softmax(-1).matmul(v)


class SelfAttentionV1(_Attention):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        for name in NAMES:
            self.register_parameter(name, nn.Parameter(torch.rand(d_in, d_out)))

    def project(self, name: str, x: Tensor) -> Tensor:
        return x.matmul(getattr(self, name))


class SelfAttentionV2(_Attention):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        for name in NAMES:
            self.add_module(name, nn.Linear(d_in, d_out, bias=qkv_bias))

    def project(self, name: str, x: Tensor) -> Tensor:
        return getattr(self, name)(x)


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    if any(name.endswith("bias") for name, _ in source_v2.named_parameters()):
        raise ValueError("V1 has no biases")
    for name in NAMES:
        old = source_v2.get_parameter(f"{name}.weight").detach()
        setattr(target_v1, name, nn.Parameter(old.t().clone(memory_format=torch.contiguous_format)))
