# mistake: copied_without_transpose
# copy_weights copies the (d_out, d_in) weights without transposing them, which gives other outputs if d_in equals d_out and does not fit otherwise
import torch
from torch import Tensor, nn


def scaled_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    d_k = keys.shape[-1]
    omega = queries @ keys.transpose(-2, -1)
    alpha = torch.softmax(omega / d_k**0.5, dim=-1)
    return alpha @ values


class SelfAttentionV1(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query = nn.Parameter(torch.rand((d_in, d_out)))
        self.W_key = nn.Parameter(torch.rand((d_in, d_out)))
        self.W_value = nn.Parameter(torch.rand((d_in, d_out)))

    def forward(self, x: Tensor) -> Tensor:
        queries = x @ self.W_query
        keys = x @ self.W_key
        values = x @ self.W_value
        return scaled_attention(queries, keys, values)


class SelfAttentionV2(nn.Module):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        kwargs = dict(in_features=d_in, out_features=d_out, bias=qkv_bias)
        self.W_query = nn.Linear(**kwargs)
        self.W_key = nn.Linear(**kwargs)
        self.W_value = nn.Linear(**kwargs)

    def forward(self, x: Tensor) -> Tensor:
        return scaled_attention(self.W_query(x), self.W_key(x), self.W_value(x))


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    for part in ("W_query", "W_key", "W_value"):
        layer = getattr(source_v2, part)
        if layer.bias is not None:
            raise ValueError("qkv_bias must be False")
        setattr(target_v1, part, nn.Parameter(layer.weight.detach().clone()))
