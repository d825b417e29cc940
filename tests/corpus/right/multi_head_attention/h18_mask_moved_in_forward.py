# style: the mask is a plain attribute, and forward moves it to where x is
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads")
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.mask = torch.triu(torch.ones(context_length, context_length), 1).bool() if causal else None

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("n_tokens")
        shape = (b, n, self.num_heads, -1)
        q, k, v = (t.view(shape).permute(0, 2, 1, 3) for t in (self.W_query(x), self.W_key(x), self.W_value(x)))
        s = q @ k.transpose(2, 3) * k.shape[-1] ** -0.5
        if self.mask is not None:
            s = s.masked_fill(self.mask[:n, :n].to(x.device), -torch.inf)
        return self.out_proj((self.dropout(s.softmax(-1)) @ v).permute(0, 2, 1, 3).reshape(b, n, -1))
