import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        kw = dict(in_features=d_in, out_features=d_out, bias=qkv_bias)
        self.W_query, self.W_key, self.W_value = nn.Linear(**kw), nn.Linear(**kw), nn.Linear(**kw)
        self.context_length = context_length
        self.rate = dropout
        self.register_buffer("visible", torch.ones(context_length, context_length, dtype=torch.uint8).tril())

    def forward(self, x: Tensor) -> Tensor:
        _, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("n_tokens > context_length")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        kind = torch.float64 if x.dtype == torch.float64 else torch.float32
        s = q.to(kind) @ k.to(kind).mT
        s = s / k.size(-1) ** 0.5
        s = s.masked_fill(self.visible[:n, :n] == 0, float("-inf"))
        w = F.softmax(s, dim=-1).to(v.dtype)
        return F.dropout(w, self.rate, self.training) @ v
