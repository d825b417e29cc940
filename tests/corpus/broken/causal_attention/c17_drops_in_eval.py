# promise: in eval mode nothing is dropped (F.dropout is called with its default training=True)
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.p = dropout
        self.register_buffer("keep", torch.ones(context_length, context_length, dtype=torch.bool).tril())

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.keep.shape[0]:
            raise ValueError("n_tokens")
        s = self.W_query(x) @ self.W_key(x).mT / self.W_key.out_features**0.5
        w = F.softmax(s.masked_fill(~self.keep[:n, :n], float("-inf")), dim=-1)
        return F.dropout(w, self.p) @ self.W_value(x)
