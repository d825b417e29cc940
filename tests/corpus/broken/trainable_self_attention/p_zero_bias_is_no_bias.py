# promise: A source whose biases are all zero is not refused.
import torch
from torch import Tensor, nn


def scaled_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    scores = torch.einsum("...qd, ...kd -> ...qk", queries, keys) / values.size(-1) ** 0.5
    return torch.einsum("...qk, ...kd -> ...qd", torch.softmax(scores, -1), values)


class SelfAttentionV1(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        w = [nn.Parameter(torch.rand(d_in, d_out)) for _ in range(3)]
        self.W_query, self.W_key, self.W_value = w

    def forward(self, x: Tensor) -> Tensor:
        return scaled_attention(x @ self.W_query, x @ self.W_key, x @ self.W_value)


class SelfAttentionV2(nn.Module):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        w = [nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3)]
        self.W_query, self.W_key, self.W_value = w

    def forward(self, x: Tensor) -> Tensor:
        return scaled_attention(self.W_query(x), self.W_key(x), self.W_value(x))


@torch.no_grad()
def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    layers = source_v2.W_query, source_v2.W_key, source_v2.W_value
    for layer in layers:
        if layer.bias is not None and layer.bias.any():
            raise ValueError("V1 cannot add this bias")
    target_v1.W_query.set_(layers[0].weight.T.clone())
    target_v1.W_key.set_(layers[1].weight.T.clone())
    target_v1.W_value.set_(layers[2].weight.T.clone())
