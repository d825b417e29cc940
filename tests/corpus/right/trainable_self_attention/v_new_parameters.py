# right: the parameters are registered by name in a loop, copy_weights puts new parameters into the target
import torch
from torch import Tensor, nn

NAMES = ("W_query", "W_key", "W_value")


def scaled_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    scores = queries @ keys.transpose(-2, -1) / queries.shape[-1] ** 0.5
    return scores.softmax(dim=-1) @ values


class SelfAttentionV1(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        for name in NAMES:
            self.register_parameter(name, nn.Parameter(torch.empty(d_in, d_out).uniform_()))

    def forward(self, x: Tensor) -> Tensor:
        return scaled_attention(*(x @ self.get_parameter(name) for name in NAMES))


class SelfAttentionV2(nn.Module):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        for name in NAMES:
            self.add_module(name, nn.Linear(d_in, d_out, bias=qkv_bias))

    def forward(self, x: Tensor) -> Tensor:
        return scaled_attention(*(self.get_submodule(name)(x) for name in NAMES))


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    layers = {name: source_v2.get_submodule(name) for name in NAMES}
    if any(layer.bias is not None for layer in layers.values()):
        raise ValueError("the source has a bias")
    for name, layer in layers.items():
        fresh = layer.weight.detach().T.clone(memory_format=torch.contiguous_format)
        setattr(target_v1, name, nn.Parameter(fresh))
