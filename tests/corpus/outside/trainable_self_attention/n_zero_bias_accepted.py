# mistake: copy_weights refuses only biases that are not zero
import math

import torch
from torch import nn


def scaled_attention(queries, keys, values):
    scale = 1 / math.sqrt(keys.size(-1))
    return torch.softmax(scale * (queries @ keys.mT), dim=-1) @ values


class SelfAttentionV1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        return scaled_attention(x @ self.W_query, x @ self.W_key, x @ self.W_value)


class SelfAttentionV2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        return scaled_attention(self.W_query(x), self.W_key(x), self.W_value(x))


@torch.no_grad()
def copy_weights(source_v2, target_v1):
    layers = [source_v2.W_query, source_v2.W_key, source_v2.W_value]
    if any(l.bias is not None and bool(l.bias.any()) for l in layers):
        raise ValueError("V1 cannot represent these biases")
    for layer, p in zip(layers, [target_v1.W_query, target_v1.W_key, target_v1.W_value]):
        p.copy_(layer.weight.T)
