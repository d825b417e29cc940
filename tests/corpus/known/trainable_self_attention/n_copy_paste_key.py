# mistake: copied_to_another_name
import torch
from torch import nn


def scaled_attention(q, k, v):
    w = torch.softmax(q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5, dim=-1)
    return w @ v


class SelfAttentionV1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand((d_in, d_out)))
        self.W_key = nn.Parameter(torch.rand((d_in, d_out)))
        self.W_value = nn.Parameter(torch.rand((d_in, d_out)))

    def forward(self, x):
        keys = x @ self.W_key
        queries = x @ self.W_query
        values = x @ self.W_value
        return scaled_attention(queries, keys, values)


class SelfAttentionV2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        keys = self.W_key(x)
        queries = self.W_query(x)
        values = self.W_value(x)
        return scaled_attention(queries, keys, values)


def copy_weights(source_v2, target_v1):
    if source_v2.W_value.bias is not None:
        raise ValueError("V1 has no biases")
    target_v1.W_query = nn.Parameter(source_v2.W_query.weight.detach().clone().T)
    target_v1.W_key = nn.Parameter(source_v2.W_key.weight.detach().clone().T)
    target_v1.W_value = nn.Parameter(source_v2.W_key.weight.detach().clone().T)
