# right: an abstract base class holds forward, setattr in a loop, load_state_dict for the copy
from abc import abstractmethod

import torch
from torch import Tensor, nn

NAMES = ("W_query", "W_key", "W_value")


class Base(nn.Module):
    """What both versions share: forward, from three projections."""

    @abstractmethod
    def project(self, name: str, x: Tensor) -> Tensor: ...

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (self.project(name, x) for name in NAMES)
        scores = torch.einsum("...id,...jd->...ij", q * k.size(-1) ** -0.5, k)
        return torch.einsum("...ij,...jd->...id", scores.softmax(-1), v)


class SelfAttentionV1(Base):
    """Projections are plain parameters."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        for name in NAMES:
            self.register_parameter(name, nn.Parameter(torch.rand(d_in, d_out)))

    def project(self, name: str, x: Tensor) -> Tensor:
        return torch.einsum("...i,io->...o", x, self.get_parameter(name))


class SelfAttentionV2(Base):
    """Projections are linear layers."""

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        for name in NAMES:
            self.add_module(name, nn.Linear(d_in, d_out, qkv_bias))

    def project(self, name: str, x: Tensor) -> Tensor:
        return self.get_submodule(name)(x)


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> SelfAttentionV1:
    """Copy the weights of a V2 without biases into a V1."""
    state = source_v2.state_dict()
    if any(name.endswith("bias") for name in state):
        raise ValueError("V1 has no biases")
    target_v1.load_state_dict({name.removesuffix(".weight"): t.t() for name, t in state.items()})
    return target_v1
