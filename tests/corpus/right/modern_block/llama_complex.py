# right: Meta's way: pairs as complex numbers times freqs_cis, made in forward; repeat_kv by expand.
import math

import torch
import torch.nn.functional as F
from rms_norm import RMSNorm
from swiglu import SwiGLU
from torch import nn


def precompute_freqs_cis(dim, start, end, theta, device):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2, device=device, dtype=torch.float64) / dim))
    t = torch.arange(start, end, device=device, dtype=torch.float64)
    freqs = torch.outer(t, freqs)
    return torch.polar(torch.ones_like(freqs), freqs)


def apply_rotary_emb(x, freqs_cis):
    pairs = x.double().reshape(*x.shape[:-1], -1, 2)
    turned = torch.view_as_complex(pairs) * freqs_cis
    return torch.view_as_real(turned).flatten(-2).type_as(x)


def repeat_kv(x, n_rep):
    b, n_kv, t, d = x.shape
    return x[:, :, None].expand(b, n_kv, n_rep, t, d).reshape(b, n_kv * n_rep, t, d)


class RotaryAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, num_kv_heads, base=10000.0):
        super().__init__()
        if d_out % num_heads or num_heads % num_kv_heads:
            raise ValueError("heads do not divide")
        self.head_dim = d_out // num_heads
        if self.head_dim % 2:
            raise ValueError("the size of a head is odd")
        self.n_heads, self.n_kv_heads = num_heads, num_kv_heads
        self.context_length, self.theta = context_length, base
        self.W_query = nn.Linear(d_in, num_heads * self.head_dim, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.head_dim, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.head_dim, bias=False)
        self.out_proj = nn.Linear(d_out, d_out, bias=False)
        self.attn_dropout = nn.Dropout(dropout)

    def forward(self, x, cache=None):
        bsz, seqlen, _ = x.shape
        start_pos = 0 if cache is None else cache[0].shape[2]
        if start_pos + seqlen > self.context_length:
            raise ValueError("more tokens than context_length")
        xq = self.W_query(x).view(bsz, seqlen, self.n_heads, self.head_dim).transpose(1, 2)
        xk = self.W_key(x).view(bsz, seqlen, self.n_kv_heads, self.head_dim).transpose(1, 2)
        xv = self.W_value(x).view(bsz, seqlen, self.n_kv_heads, self.head_dim).transpose(1, 2)
        freqs_cis = precompute_freqs_cis(self.head_dim, start_pos, start_pos + seqlen, self.theta, x.device)
        xq, xk = apply_rotary_emb(xq, freqs_cis), apply_rotary_emb(xk, freqs_cis)
        if cache is not None:
            xk = torch.cat([cache[0], xk], dim=2)
            xv = torch.cat([cache[1], xv], dim=2)
        keys = repeat_kv(xk, self.n_heads // self.n_kv_heads)
        values = repeat_kv(xv, self.n_heads // self.n_kv_heads)
        scores = xq @ keys.transpose(2, 3) / math.sqrt(self.head_dim)
        mask = torch.full((seqlen, seqlen), float("-inf"), device=x.device)
        mask = torch.triu(mask, diagonal=1)
        mask = torch.hstack([torch.zeros((seqlen, start_pos), device=x.device), mask]).type_as(scores)
        scores = F.softmax((scores + mask).float() if scores.dtype != torch.float64 else scores + mask, dim=-1)
        output = self.attn_dropout(scores.type_as(xq)) @ values
        output = output.transpose(1, 2).contiguous().view(bsz, seqlen, -1)
        return self.out_proj(output), (xk, xv)


class ModernBlock(nn.Module):
    def __init__(self, d_model, num_heads, num_kv_heads, d_ff, context_length, dropout=0.0, base=10000.0):
        super().__init__()
        self.attention = RotaryAttention(d_model, d_model, context_length, dropout, num_heads, num_kv_heads, base)
        self.feed_forward = SwiGLU(d_model, d_ff, dropout)
        self.norm1 = RMSNorm(d_model)
        self.norm2 = RMSNorm(d_model)

    def forward(self, x, cache=None):
        attended, cache = self.attention(self.norm1(x), cache)
        h = x + attended
        out = h + self.feed_forward(self.norm2(h))
        return out, cache
