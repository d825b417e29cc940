# mistake: biases_dropped
# copy_weights takes a source with biases, leaves the biases out silently and raises no ValueError
import torch
from torch import Tensor, nn


def scaled_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    scale = queries.size(-1) ** 0.5
    weights = nn.functional.softmax((queries / scale) @ keys.transpose(-1, -2), dim=-1)
    return weights @ values


class SelfAttentionV1(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query, self.W_key, self.W_value = (
            nn.Parameter(torch.rand(d_in, d_out)) for _ in range(3)
        )

    def forward(self, x: Tensor) -> Tensor:
        return scaled_attention(*(x @ w for w in (self.W_query, self.W_key, self.W_value)))


class SelfAttentionV2(nn.Module):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query, self.W_key, self.W_value = (
            nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3)
        )

    def forward(self, x: Tensor) -> Tensor:
        return scaled_attention(*(layer(x) for layer in (self.W_query, self.W_key, self.W_value)))


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    target_v1.W_query = nn.Parameter(source_v2.W_query.weight.detach().T.clone())
    target_v1.W_key = nn.Parameter(source_v2.W_key.weight.detach().T.clone())
    target_v1.W_value = nn.Parameter(source_v2.W_value.weight.detach().T.clone())
