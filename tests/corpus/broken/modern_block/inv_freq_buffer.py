# broken: inv_freq is a floating point buffer, so .to(bfloat16) rounds the frequencies and the angles are wrong.
import torch
from rms_norm import RMSNorm
from swiglu import SwiGLU
from torch import Tensor, nn


def rotate_every_two(x: Tensor) -> Tensor:
    return torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)


class RotaryAttention(nn.Module):
    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, num_kv_heads: int,
        base: float = 10000.0,
    ) -> None:
        super().__init__()
        d_head, rest = divmod(d_out, num_heads)
        if rest != 0 or num_heads % num_kv_heads != 0 or d_head % 2 == 1:
            raise ValueError(f"{num_heads} heads, {num_kv_heads} of keys, do not fit to {d_out} columns")
        self.d_head, self.base = d_head, base
        inv_freq = base ** -(torch.arange(0, d_head, 2).float() / d_head)
        self.register_buffer("inv_freq", inv_freq, persistent=False)
        self.groups, self.context_length, self.rate = num_kv_heads, context_length, dropout
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out, bias=False)

    def rotary(self, n: int, start: int, x: Tensor) -> tuple[Tensor, Tensor]:
        position = torch.arange(start, start + n, device=x.device).float()
        angles = torch.einsum("i,j->ij", position, self.inv_freq.float()).repeat_interleave(2, dim=-1)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)

    def forward(self, x: Tensor, cache=None):
        batch, n = x.shape[:2]
        start = cache[0].size(-2) if cache else 0
        if n + start > self.context_length:
            raise ValueError(f"{n + start} tokens, but the context has {self.context_length}")
        q = self.W_query(x).unflatten(-1, (self.groups, -1, self.d_head))  # b n g r d
        k = self.W_key(x).unflatten(-1, (self.groups, self.d_head)).transpose(1, 2)
        v = self.W_value(x).unflatten(-1, (self.groups, self.d_head)).transpose(1, 2)
        cos, sin = self.rotary(n, start, x)
        k = k * cos + rotate_every_two(k) * sin
        q = q * cos[:, None, None] + rotate_every_two(q) * sin[:, None, None]
        if cache:
            k, v = torch.cat((cache[0], k), -2), torch.cat((cache[1], v), -2)
        scores = torch.einsum("bngrd,bgmd->bgrnm", q, k) * self.d_head**-0.5
        i = torch.arange(start, start + n, device=x.device)
        j = torch.arange(start + n, device=x.device)
        weights = scores.masked_fill(i[:, None] < j, -torch.inf).softmax(dim=-1)
        weights = nn.functional.dropout(weights, p=self.rate, training=self.training)
        mixed = torch.einsum("bgrnm,bgmd->bngrd", weights, v)
        return self.out_proj(mixed.flatten(2)), (k, v)


class ModernBlock(nn.Module):
    def __init__(
        self, d_model: int, num_heads: int, num_kv_heads: int, d_ff: int, context_length: int,
        dropout: float = 0.0, base: float = 10000.0,
    ) -> None:
        super().__init__()
        self.norm1, self.norm2 = RMSNorm(d_model), RMSNorm(d_model)
        self.attention = RotaryAttention(
            d_model, d_model, context_length, dropout=dropout, num_heads=num_heads, num_kv_heads=num_kv_heads, base=base
        )
        self.feed_forward = SwiGLU(d_model, d_ff, dropout)

    def forward(self, x: Tensor, cache=None):
        attended, cache = self.attention(self.norm1(x), cache)
        h = x + attended
        return h + self.feed_forward(self.norm2(h)), cache
