# promise: dropout is applied to the weights (whole columns are dropped: one draw per key for all queries)
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out")
        self.nh, self.p = num_heads, dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        see = torch.ones(context_length, context_length, dtype=torch.bool)
        self.register_buffer("see", see.tril() if causal else see)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > len(self.see):
            raise ValueError("tokens")
        q, k, v = (w(x).reshape(b, n, self.nh, -1).transpose(1, 2) for w in (self.W_query, self.W_key, self.W_value))
        s = torch.matmul(q, k.transpose(-1, -2)) / k.shape[-1] ** 0.5
        w = s.masked_fill(~self.see[:n, :n], -torch.inf).softmax(-1)
        # dropout1d drops a key for every query
        per_key = F.dropout(torch.ones_like(w[:, :, :1]), self.p, self.training)
        out = torch.matmul(w * per_key, v)
        return self.out_proj(out.transpose(1, 2).flatten(2))
