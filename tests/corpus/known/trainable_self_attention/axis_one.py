# mistake: axes_counted_from_the_front
# the softmax runs over axis 1, which is the keys only for x of two axes; with a batch it runs over the queries
import torch
from torch import Tensor, nn


def scaled_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    scores = torch.matmul(queries, keys.transpose(-2, -1))
    scores = scores / queries.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=1)
    return torch.matmul(weights, values)


class SelfAttentionV1(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.register_parameter("W_query", nn.Parameter(torch.rand(d_in, d_out)))
        self.register_parameter("W_key", nn.Parameter(torch.rand(d_in, d_out)))
        self.register_parameter("W_value", nn.Parameter(torch.rand(d_in, d_out)))

    def forward(self, x: Tensor) -> Tensor:
        return scaled_attention(
            torch.matmul(x, self.W_query), torch.matmul(x, self.W_key), torch.matmul(x, self.W_value)
        )


class SelfAttentionV2(nn.Module):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x: Tensor) -> Tensor:
        return scaled_attention(self.W_query(x), self.W_key(x), self.W_value(x))


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    layers = (source_v2.W_query, source_v2.W_key, source_v2.W_value)
    targets = (target_v1.W_query, target_v1.W_key, target_v1.W_value)
    if any(layer.bias is not None for layer in layers):
        raise ValueError("the source has biases")
    for layer, target in zip(layers, targets):
        target.data = layer.weight.detach().t().clone()
