# right
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
        def by_head(tensor):
            """Make each head an item of its own: (batch * heads, n_tokens, d_head)."""
            heads = tensor.shape[-1] // self.d_head
            parts = tensor.view(batch, n_tokens, heads, self.d_head).transpose(1, 2)
            return parts.reshape(batch * heads, n_tokens, self.d_head)

        q = rotate(by_head(self.W_query(x)), positions, self.base)
        k = rotate(by_head(self.W_key(x)), positions, self.base)
        v = by_head(self.W_value(x))
        if cache is not None:
            k = torch.cat([cache[0].flatten(0, 1), k], dim=1)
            v = torch.cat([cache[1].flatten(0, 1), v], dim=1)
        hidden = torch.ones(n_tokens, n_cached + n_tokens, dtype=torch.bool, device=x.device)
        hidden = hidden.triu(diagonal=n_cached + 1)
        # The heads of a group are neighbours, so each item of keys serves the next `group` items.
        group = self.num_heads // self.num_kv_heads
        scores = torch.bmm(q, k.repeat_interleave(group, 0).transpose(1, 2)) / self.d_head**0.5
        weights = self.dropout(scores.masked_fill(hidden, float("-inf")).softmax(-1))
        context = torch.bmm(weights, v.repeat_interleave(group, 0))
        context = context.view(batch, self.num_heads, n_tokens, self.d_head).transpose(1, 2)
        cache = tuple(each.unflatten(0, (batch, self.num_kv_heads)) for each in (k, v))
        return self.out_proj(context.reshape(batch, n_tokens, -1)), cache



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
