# note: one base class for both modules, fused projections by concatenated matrices in V1, and a copy through load_state_dict
import torch
from torch import Tensor, nn

ROLES = ("W_query", "W_key", "W_value")


class _Attention(nn.Module):
    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        raise TypeError("abstract")

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.project(x)
        q = q * q.shape[-1] ** -0.5
        s = q @ k.mT
        e = (s - s.amax(-1, keepdim=True)).exp()
        return (e @ v) / e.sum(-1, keepdim=True)


class SelfAttentionV1(_Attention):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        for role in ROLES:
            self.register_parameter(role, nn.Parameter(torch.rand(d_in, d_out)))

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        fused = torch.cat([self.W_query, self.W_key, self.W_value], dim=1)
        return (x @ fused).chunk(3, dim=-1)


class SelfAttentionV2(_Attention):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        for role in ROLES:
            self.add_module(role, nn.Linear(d_in, d_out, bias=bool(qkv_bias)))

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.W_query(x), self.W_key(x), self.W_value(x)


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    state = source_v2.state_dict()
    if any(name.endswith("bias") for name in state):
        raise ValueError("a V1 has no room for biases")
    target_v1.load_state_dict({role: state[f"{role}.weight"].T.contiguous() for role in ROLES})
