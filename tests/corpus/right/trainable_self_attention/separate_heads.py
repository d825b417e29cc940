"""Trainable self-attention with a base class, and new parameters for the copy."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Base(nn.Module):
    def attend(self, query, key, value):
        key = key.transpose(-1, -2)
        weight = F.softmax(torch.matmul(query, key) / math.sqrt(query.size(-1)), dim=-1)
        return torch.matmul(weight, value)


class SelfAttentionV1(Base):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out), requires_grad=True)
        self.W_key = nn.Parameter(torch.rand(d_in, d_out), requires_grad=True)
        self.W_value = nn.Parameter(torch.rand(d_in, d_out), requires_grad=True)

    def forward(self, x):
        return self.attend(x.matmul(self.W_query), x.matmul(self.W_key), x.matmul(self.W_value))


class SelfAttentionV2(Base):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        return self.attend(self.W_query(x), self.W_key(x), self.W_value(x))


def copy_weights(source_v2, target_v1):
    if source_v2.W_value.bias is not None:
        raise RuntimeError("V1 cannot keep biases")
    target_v1.W_query = nn.Parameter(source_v2.W_query.weight.detach().clone().t().contiguous())
    target_v1.W_key = nn.Parameter(source_v2.W_key.weight.detach().clone().t().contiguous())
    target_v1.W_value = nn.Parameter(source_v2.W_value.weight.detach().clone().t().contiguous())
    return target_v1
