# right: the three matrices concatenated into one product and split afterwards, copy by identity matrix
import torch
from torch import Tensor, nn

NAMES = ("W_query", "W_key", "W_value")


def mix(qkv: Tensor) -> Tensor:
    query, key, value = qkv.chunk(3, dim=-1)
    size = torch.tensor(query.shape[-1], dtype=query.dtype)
    similarity = (query.unsqueeze(-2) * key.unsqueeze(-3)).sum(-1)
    share = nn.Softmax(dim=-1)(similarity / torch.sqrt(size))
    return share @ value


class SelfAttentionV1(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        for name in NAMES:
            setattr(self, name, nn.Parameter(torch.rand(d_in, d_out)))

    def forward(self, x: Tensor) -> Tensor:
        wide = torch.cat([getattr(self, name) for name in NAMES], dim=1)
        return mix(x @ wide)


class SelfAttentionV2(nn.Module):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        for name in NAMES:
            setattr(self, name, nn.Linear(d_in, d_out, bias=qkv_bias))

    def forward(self, x: Tensor) -> Tensor:
        return mix(torch.cat([getattr(self, name)(x) for name in NAMES], dim=-1))


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> SelfAttentionV1:
    layers = [getattr(source_v2, name) for name in NAMES]
    if sum(layer.bias is not None for layer in layers) > 0:
        raise ValueError("Found biases in the source, but V1 has none.")
    with torch.no_grad():
        for name, layer in zip(NAMES, layers):
            parameter = getattr(target_v1, name)
            unit = torch.eye(layer.in_features, dtype=layer.weight.dtype)
            parameter[...] = layer(unit)
    return target_v1
