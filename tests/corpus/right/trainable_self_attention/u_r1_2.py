# right: parameters made in a loop, einsum, F.linear, copying by fresh parameters of cloned transposes
import torch
from torch import Tensor, nn
from torch.nn import functional as F

NAMES = ("W_query", "W_key", "W_value")


def scaled_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    scores = torch.einsum("...id,...jd->...ij", queries, keys).div(keys.shape[-1] ** 0.5)
    return torch.einsum("...ij,...jd->...id", F.softmax(scores, dim=-1), values)


class SelfAttentionV1(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        for name in NAMES:
            self.register_parameter(name, nn.Parameter(torch.rand(d_in, d_out)))

    def forward(self, x: Tensor) -> Tensor:
        return scaled_attention(*(torch.matmul(x, getattr(self, name)) for name in NAMES))


class SelfAttentionV2(nn.Module):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        for name in NAMES:
            self.add_module(name, nn.Linear(d_in, d_out, bias=bool(qkv_bias)))

    def forward(self, x: Tensor) -> Tensor:
        layers = (getattr(self, name) for name in NAMES)
        return scaled_attention(*(F.linear(x, layer.weight, layer.bias) for layer in layers))


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    layers = {name: getattr(source_v2, name) for name in NAMES}
    if any(layer.bias is not None for layer in layers.values()):
        raise ValueError("the source has biases, for which the target has no place")
    for name, layer in layers.items():
        old = getattr(target_v1, name)
        fresh = layer.weight.detach().T.to(dtype=old.dtype, device=old.device, copy=True)
        setattr(target_v1, name, nn.Parameter(fresh.contiguous()))
