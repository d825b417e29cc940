"""Trainable self-attention in einsum notation (i input, o output, q queries, k keys)."""

import torch
from torch import nn


def attend(queries, keys, values):
    s = torch.einsum("...qo,...ko->...qk", queries, keys) / queries.shape[-1] ** 0.5
    e = torch.exp(s - s.detach().amax(-1, keepdim=True))
    w = e / torch.einsum("...qk->...q", e)[..., None]
    return torch.einsum("...qk,...ko->...qo", w, values)


class SelfAttentionV1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_value = nn.Parameter(nn.init.uniform_(torch.empty(d_in, d_out)))
        self.W_key = nn.Parameter(nn.init.uniform_(torch.empty(d_in, d_out)))
        self.W_query = nn.Parameter(nn.init.uniform_(torch.empty(d_in, d_out)))

    def forward(self, x):
        matrices = self.W_query, self.W_key, self.W_value
        return attend(*(torch.einsum("...ti,io->...to", x, W) for W in matrices))


class SelfAttentionV2(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        projected = []
        for layer in (self.W_query, self.W_key, self.W_value):
            y = torch.einsum("...ti,oi->...to", x, layer.weight)
            projected.append(y if layer.bias is None else y + layer.bias)
        return attend(*projected)


def copy_weights(source_v2, target_v1):
    assert source_v2.W_key.bias is None, "no place for biases"
    state = {name[: -len(".weight")]: value.T for name, value in source_v2.state_dict().items()}
    target_v1.load_state_dict(state)
