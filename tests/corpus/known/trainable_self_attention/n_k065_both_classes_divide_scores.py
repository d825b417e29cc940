# mistake: scaled_by_root_of_d_in
import torch
from torch import Tensor, nn


class SelfAttentionV1(nn.Module):

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        keys = x @ self.W_key
        queries = x @ self.W_query
        values = x @ self.W_value

        attn_scores = queries @ keys.transpose(-2, -1)  # omega
        attn_weights = torch.softmax(attn_scores / x.shape[-1] ** 0.5, dim=-1)

        context_vec = attn_weights @ values
        return context_vec


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

        attn_scores = queries @ keys.transpose(-2, -1)
        attn_weights = torch.softmax(attn_scores / x.shape[-1] ** 0.5, dim=-1)

        context_vec = attn_weights @ values
        return context_vec


def copy_weights(source_v2, target_v1):
    if source_v2.W_query.bias is not None:
        raise ValueError("cannot copy biases")
    for name in ["W_query", "W_key", "W_value"]:
        weight = getattr(source_v2, name).weight.detach().T.clone()
        setattr(target_v1, name, nn.Parameter(weight))
