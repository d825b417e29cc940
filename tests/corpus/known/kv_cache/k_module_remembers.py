# mistake: kept_in_module
# the module keeps the cache itself and goes on from it in the next call, also when that call has no cache or another one
import torch
from torch import Tensor, nn

Cache = tuple[Tensor, Tensor]


class CachedAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"{num_heads} heads do not divide d_out = {d_out}")
        self.context_length = context_length
        self.num_heads = num_heads
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.cache_k = None
        self.cache_v = None

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        b, n, _ = x.shape
        shape = (b, n, self.num_heads, self.d_head)
        q = self.W_query(x).reshape(shape).transpose(1, 2)
        k_new = self.W_key(x).reshape(shape).transpose(1, 2)
        v_new = self.W_value(x).reshape(shape).transpose(1, 2)
        if self.cache_k is None or self.cache_k.shape[0] != b or self.cache_k.dtype != k_new.dtype:
            k, v = k_new, v_new
        else:
            k = torch.cat([self.cache_k, k_new], dim=2)
            v = torch.cat([self.cache_v, v_new], dim=2)
        past = k.shape[2] - n
        if past + n > self.context_length:
            raise ValueError("context_length exceeded")
        self.cache_k, self.cache_v = k.detach(), v.detach()
        i = torch.arange(n, device=x.device)[:, None] + past
        j = torch.arange(past + n, device=x.device)[None, :]
        scores = (q @ k.transpose(-1, -2)) / self.d_head**0.5
        scores = scores.masked_fill(j > i, -torch.inf)
        weights = self.dropout(scores.softmax(dim=-1))
        context = (weights @ v).transpose(1, 2).reshape(b, n, -1)
        return self.out_proj(context), (k, v)
