import torch
from torch import Tensor, nn

NAMES = ("W_query", "W_key", "W_value")


def scaled_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    scores = torch.einsum("...id,...jd->...ij", queries * queries.shape[-1] ** -0.5, keys)
    return torch.einsum("...ij,...jd->...id", scores.softmax(dim=-1), values)


class _ThreeProjections(nn.Module):
    def project(self, x: Tensor, name: str) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        return scaled_attention(*(self.project(x, name) for name in NAMES))


class SelfAttentionV1(_ThreeProjections):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        for name in NAMES:
            self.register_parameter(name, nn.Parameter(torch.rand(d_in, d_out)))

    def project(self, x: Tensor, name: str) -> Tensor:
        return torch.einsum("...c,cd->...d", x, getattr(self, name))


class SelfAttentionV2(_ThreeProjections):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        for name in NAMES:
            self.add_module(name, nn.Linear(d_in, d_out, bias=qkv_bias))

    def project(self, x: Tensor, name: str) -> Tensor:
        return getattr(self, name)(x)


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    state = source_v2.state_dict()
    if any(key.endswith(".bias") for key in state):
        raise ValueError("V1 has no biases to copy to")
    target_v1.load_state_dict({name: state[f"{name}.weight"].T for name in NAMES})
