# broken: "No Python loop runs over batch, heads or tokens": each head is computed in turn
import torch
from rms_norm import RMSNorm
from swiglu import SwiGLU
from torch import nn


def rotate(x, positions, base=10000.0):
    """Turn the pairs of neighbours of x (..., n_tokens, d_head)."""
    wide = torch.promote_types(x.dtype, torch.float32)
    d_head = x.shape[-1]
    inverse = base ** -(torch.arange(0, d_head, 2, device=x.device, dtype=wide) / d_head)
    angles = positions.to(wide)[:, None] * inverse
    a, b = x[..., ::2], x[..., 1::2]
    pairs = (a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos())
    return torch.stack(pairs, dim=-1).flatten(-2).to(x.dtype)


class RotaryAttention(nn.Module):
    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, num_kv_heads, base=10000.0
    ):
        super().__init__()
        if d_out % num_heads or num_heads % num_kv_heads:
            raise ValueError("heads do not divide")
        self.d_head = d_out // num_heads
        if self.d_head % 2:
            raise ValueError("d_head is odd")
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.context_length, self.base = context_length, base
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, cache=None):
        batch, n_tokens, _ = x.shape
        n_cached = 0 if cache is None else cache[0].shape[2]
        if n_cached + n_tokens > self.context_length:
            raise ValueError("too long")
        positions = torch.arange(n_cached, n_cached + n_tokens, device=x.device)
        query_heads = self.W_query(x).split(self.d_head, dim=-1)
        key_heads = self.W_key(x).split(self.d_head, dim=-1)
        value_heads = self.W_value(x).split(self.d_head, dim=-1)
        all_keys, all_values = [], []
        for i, (k, v) in enumerate(zip(key_heads, value_heads)):
            k = rotate(k, positions, self.base)
            if cache is not None:
                k = torch.cat([cache[0][:, i], k], dim=1)
                v = torch.cat([cache[1][:, i], v], dim=1)
            all_keys.append(k)
            all_values.append(v)
        hidden = torch.ones(n_tokens, n_cached + n_tokens, dtype=torch.bool, device=x.device)
        hidden = hidden.triu(diagonal=n_cached + 1)
        contexts = []
        for h, q in enumerate(query_heads):
            shared = h // (self.num_heads // self.num_kv_heads)
            q = rotate(q, positions, self.base)
            scores = q @ all_keys[shared].transpose(-2, -1) / self.d_head**0.5
            scores = scores.masked_fill(hidden, float("-inf"))
            contexts.append(self.dropout(scores.softmax(-1)) @ all_values[shared])
        output = self.out_proj(torch.cat(contexts, dim=-1))
        return output, (torch.stack(all_keys, dim=1), torch.stack(all_values, dim=1))


class ModernBlock(nn.Module):
    def __init__(
        self, d_model, num_heads, num_kv_heads, d_ff, context_length, dropout=0.0, base=10000.0
    ):
        super().__init__()
        self.norm1 = RMSNorm(d_model)
        self.norm2 = RMSNorm(d_model)
        self.attention = RotaryAttention(
            d_model, d_model, context_length, dropout, num_heads, num_kv_heads, base
        )
        self.feed_forward = SwiGLU(d_model, d_ff, dropout)

    def forward(self, x, cache=None):
        attended, cache = self.attention(self.norm1(x), cache)
        x = x + attended
        return x + self.feed_forward(self.norm2(x)), cache
