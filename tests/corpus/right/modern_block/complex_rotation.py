# right
"""Own rotation with complex numbers; keys shared by expand; additive mask; preallocated cache."""
import math
import torch
from rms_norm import RMSNorm
from swiglu import SwiGLU
from torch import nn


def turn(x, positions, base):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    d_head = x.shape[-1]
    frequencies = base ** (-torch.arange(0, d_head, 2, device=x.device, dtype=torch.float64) / d_head)
    angles = torch.outer(positions.to(torch.float64), frequencies).to(wide.dtype)
    unit = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(wide.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * unit).flatten(-2).to(x.dtype)


class RotaryAttention(nn.Module):
    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, num_kv_heads, base=10000.0
    ):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out is not a multiple of num_heads")
        if num_heads % num_kv_heads != 0:
            raise ValueError("num_heads is not a multiple of num_kv_heads")
        d_head = d_out // num_heads
        if d_head % 2 == 1:
            raise ValueError("cannot rotate pairs of an odd d_head")
        self.context_length = context_length
        self.d_head = d_head
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.base = base
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_head * num_kv_heads, bias=False)
        self.W_value = nn.Linear(d_in, d_head * num_kv_heads, bias=False)
        self.out_proj = nn.Linear(d_out, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)

    def heads(self, x, count):
        return x.reshape(x.shape[0], x.shape[1], count, self.d_head).permute(0, 2, 1, 3)

    def forward(self, x, cache=None):
        if cache is None:
            empty = x.new_empty(x.shape[0], self.num_kv_heads, 0, self.d_head)
            cache = (empty, empty)
        old_keys, old_values = cache
        start = old_keys.shape[-2]
        end = start + x.shape[1]
        if end > self.context_length:
            raise ValueError(f"{end} tokens, but context_length is {self.context_length}")
        where = torch.arange(start, end, device=x.device)
        q = turn(self.heads(self.W_query(x), self.num_heads), where, self.base)
        k = turn(self.heads(self.W_key(x), self.num_kv_heads), where, self.base)
        v = self.heads(self.W_value(x), self.num_kv_heads)
        k = torch.cat([old_keys, k], dim=-2)
        v = torch.cat([old_values, v], dim=-2)
        group = self.num_heads // self.num_kv_heads
        wide = (x.shape[0], self.num_kv_heads, group, end, self.d_head)
        all_k = k.unsqueeze(2).expand(wide).reshape(x.shape[0], self.num_heads, end, self.d_head)
        all_v = v.unsqueeze(2).expand(wide).reshape(x.shape[0], self.num_heads, end, self.d_head)
        bias = torch.full((x.shape[1], end), -math.inf, dtype=x.dtype, device=x.device)
        bias = torch.triu(bias, diagonal=start + 1)
        weights = torch.softmax(torch.matmul(q, all_k.mT) / math.sqrt(self.d_head) + bias, dim=-1)
        context = torch.matmul(self.dropout(weights), all_v)
        return self.out_proj(context.permute(0, 2, 1, 3).flatten(start_dim=2)), (k, v)


class ModernBlock(nn.Module):
    def __init__(
        self, d_model, num_heads, num_kv_heads, d_ff, context_length, dropout=0.0, base=10000.0
    ):
        super().__init__()
        self.attention = RotaryAttention(
            d_in=d_model, d_out=d_model, context_length=context_length, dropout=dropout,
            num_heads=num_heads, num_kv_heads=num_kv_heads, base=base,
        )
        self.feed_forward = SwiGLU(d_model, d_ff, dropout=dropout)
        self.norm1 = RMSNorm(d_model)
        self.norm2 = RMSNorm(d_model)

    def forward(self, x, cache=None):
        residual = x
        y, new_cache = self.attention(self.norm1(x), cache=cache)
        x = torch.add(residual, y)
        residual = x
        x = torch.add(residual, self.feed_forward(self.norm2(x)))
        return x, new_cache
