# right: the twin of one with a mistake, shared
# seen: pytorch/pytorch issue 62264. Mistake: the weights are handed over without a clone, so both modules share the same memory. (Fixed in this twin.)
import math

import torch
from torch import Tensor, nn


def scaled_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    scores = torch.einsum("...qd,...kd->...qk", queries, keys) / math.sqrt(queries.size(-1))
    weights = scores.softmax(-1)
    return torch.einsum("...qk,...kd->...qd", weights, values)


class SelfAttentionV1(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x: Tensor) -> Tensor:
        q = torch.matmul(x, self.W_query)
        k = torch.matmul(x, self.W_key)
        v = torch.matmul(x, self.W_value)
        return scaled_attention(q, k, v)


class SelfAttentionV2(nn.Module):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x: Tensor) -> Tensor:
        q = self.W_query(x)
        k = self.W_key(x)
        v = self.W_value(x)
        return scaled_attention(q, k, v)


def copy_weights(source_v2: SelfAttentionV2, target_v1: SelfAttentionV1) -> None:
    biases = (source_v2.W_query.bias, source_v2.W_key.bias, source_v2.W_value.bias)
    if any(bias is not None for bias in biases):
        raise ValueError("a module with biases cannot be copied")
    target_v1.W_query = nn.Parameter(source_v2.W_query.weight.detach().T.clone())
    target_v1.W_key = nn.Parameter(source_v2.W_key.weight.detach().T.clone())
    target_v1.W_value = nn.Parameter(source_v2.W_value.weight.detach().T.clone())
