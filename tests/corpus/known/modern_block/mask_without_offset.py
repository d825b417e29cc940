# mistake: mask_not_shifted
# tril() without the number of cached tokens as its diagonal, so new tokens see only the oldest keys.
import torch
from rms_norm import RMSNorm
from swiglu import SwiGLU
from torch import nn


class RotaryAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, num_kv_heads, base=10000.0):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        if num_heads % num_kv_heads != 0:
            raise ValueError("num_heads must be divisible by num_kv_heads")
        if (d_out // num_heads) % 2 != 0:
            raise ValueError("head_dim must be even")
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.head_dim = d_out // num_heads
        self.group_size = num_heads // num_kv_heads
        self.context_length = context_length
        self.base = base
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.head_dim, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.head_dim, bias=False)
        self.out_proj = nn.Linear(d_out, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)

    def turns(self, start, end, device):
        i = torch.arange(self.head_dim // 2, dtype=torch.float64, device=device)
        p = torch.arange(start, end, dtype=torch.float64, device=device)
        t = p[:, None] / self.base ** (2 * i / self.head_dim)
        rows = [torch.stack([t.cos(), -t.sin()], -1), torch.stack([t.sin(), t.cos()], -1)]
        return torch.stack(rows, -2)  # (tokens, head_dim / 2, 2, 2)

    def turn(self, x, turns):
        wide = torch.promote_types(x.dtype, torch.float32)
        pairs = x.to(wide).unflatten(-1, (-1, 2)).unsqueeze(-1)
        return (turns.to(wide) @ pairs).squeeze(-1).flatten(-2).to(x.dtype)

    def forward(self, x, cache=None):
        b, num_tokens, _ = x.shape
        n_cached = 0
        if cache is not None:
            past_keys, past_values = cache
            n_cached = past_keys.shape[-2]
        if n_cached + num_tokens > self.context_length:
            raise ValueError("too many tokens")
        queries = self.W_query(x).view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        keys = self.W_key(x).view(b, num_tokens, self.num_kv_heads, self.head_dim).transpose(1, 2)
        values = self.W_value(x).view(b, num_tokens, self.num_kv_heads, self.head_dim).transpose(1, 2)

        turns = self.turns(n_cached, n_cached + num_tokens, x.device)
        queries, keys = self.turn(queries, turns), self.turn(keys, turns)
        if cache is not None:
            keys = torch.cat([past_keys, keys], dim=2)
            values = torch.cat([past_values, values], dim=2)
        cache = (keys, values)

        keys = keys.repeat_interleave(self.group_size, dim=1)
        values = values.repeat_interleave(self.group_size, dim=1)
        attn_scores = queries @ keys.transpose(2, 3)
        seen = torch.ones(num_tokens, n_cached + num_tokens, dtype=torch.bool, device=x.device).tril()
        attn_scores.masked_fill_(~seen, -torch.inf)
        attn_weights = torch.softmax(attn_scores / self.head_dim**0.5, dim=-1)
        attn_weights = self.dropout(attn_weights)
        context_vec = (attn_weights @ values).transpose(1, 2).reshape(b, num_tokens, -1)
        return self.out_proj(context_vec), cache


class ModernBlock(nn.Module):
    def __init__(self, d_model, num_heads, num_kv_heads, d_ff, context_length, dropout=0.0, base=10000.0):
        super().__init__()
        self.attention = RotaryAttention(d_model, d_model, context_length, dropout, num_heads, num_kv_heads, base)
        self.feed_forward = SwiGLU(d_model, d_ff, dropout)
        self.norm1 = RMSNorm(d_model)
        self.norm2 = RMSNorm(d_model)

    def forward(self, x, cache=None):
        shortcut = x
        x, cache = self.attention(self.norm1(x), cache)
        x = x + shortcut
        shortcut = x
        x = self.feed_forward(self.norm2(x))
        return x + shortcut, cache
