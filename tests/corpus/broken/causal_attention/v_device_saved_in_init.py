# promise: self.device is read once in __init__ and is out of date after module.to
import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(p=dropout)
        self.context_length = context_length
        self.device = self.W_query.weight.device

    def forward(self, x):
        n_tokens = x.shape[1]
        if n_tokens > self.context_length:
            raise ValueError("too many tokens")

        q = self.W_query(x)
        k = self.W_key(x)
        v = self.W_value(x)
        scores = torch.einsum("bid,bjd->bij", q, k) / k.shape[-1] ** 0.5

        i = torch.arange(n_tokens, device=self.device)
        allowed = i[None, :] <= i[:, None]
        scores = torch.where(allowed, scores, float("-inf"))

        weights = torch.softmax(scores, dim=-1)
        weights = self.dropout(weights)
        return torch.einsum("bij,bjd->bid", weights, v)
