# style: unusual
import torch
from torch import Tensor, nn

NAMES = ("W_query", "W_key", "W_value")


def scaled_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Return the values, weighted by how well their keys match each query."""
    scores = torch.einsum("...qd,...kd->...qk", queries, keys).mul(queries.shape[-1] ** -0.5)
    return torch.einsum("...qk,...kd->...qd", scores.softmax(-1), values)


class SelfAttentionV1(nn.Module):
    """Plain parameters."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        for name in NAMES:
            self.register_parameter(name, nn.Parameter(torch.empty(d_in, d_out).uniform_(0, 1)))

    def forward(self, x: Tensor) -> Tensor:
        return scaled_attention(*(x @ getattr(self, name) for name in NAMES))


class SelfAttentionV2(nn.Module):
    """Linear layers."""

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        for name in NAMES:
            self.add_module(name, nn.Linear(d_in, d_out, bias=qkv_bias))

    def forward(self, x: Tensor) -> Tensor:
        return scaled_attention(*(getattr(self, name)(x) for name in NAMES))


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    layers = {name: getattr(source_v2, name) for name in NAMES}
    if any(layer.bias is not None for layer in layers.values()):
        raise ValueError("V1 has no room for biases")
    state = {name: layer.weight.detach().mT for name, layer in layers.items()}
    target_v1.load_state_dict(state)
