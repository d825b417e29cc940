import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.context_length = context_length

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError("n_tokens > context_length")
        t = torch.arange(n, device=x.device)
        s = self.W_query(x) @ self.W_key(x).transpose(-1, -2)
        s = s.masked_fill(t[None, :] > t[:, None], -torch.inf) / self.W_key.out_features ** 0.5
        return self.dropout(s.softmax(dim=-1)) @ self.W_value(x)
