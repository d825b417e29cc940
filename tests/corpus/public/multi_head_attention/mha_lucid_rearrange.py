# deviates: the mask is made in forward, no buffer; a long input raises AssertionError
import torch
from torch import nn, einsum

# einops is not installed here, so a little rearrange of my own


def rearrange(t, pattern, h=None):
    if pattern == 'b n (h d) -> b h n d':
        b, n, hd = t.shape
        return t.reshape(b, n, h, hd // h).permute(0, 2, 1, 3)
    if pattern == 'b h n d -> b n (h d)':
        b, h, n, d = t.shape
        return t.permute(0, 2, 1, 3).reshape(b, n, h * d)
    raise NotImplementedError(pattern)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias = False, causal = True):
        super().__init__()
        dim_head = d_out // num_heads
        assert dim_head * num_heads == d_out, 'heads must divide the inner dimension'

        self.heads = num_heads
        self.causal = causal
        self.max_seq_len = context_length
        self.scale = dim_head ** -0.5

        self.W_query = nn.Linear(d_in, d_out, bias = qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias = qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias = qkv_bias)

        self.attend = nn.Softmax(dim = -1)
        self.dropout = nn.Dropout(dropout)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        n, device, h = x.shape[-2], x.device, self.heads
        assert n <= self.max_seq_len, f'sequence of length {n} exceeds {self.max_seq_len}'

        qkv = (self.W_query(x), self.W_key(x), self.W_value(x))
        q, k, v = map(lambda t: rearrange(t, 'b n (h d) -> b h n d', h = h), qkv)

        q = q * self.scale
        sim = einsum('b h i d, b h j d -> b h i j', q, k)

        if self.causal:
            i, j = sim.shape[-2:]
            causal_mask = torch.ones((i, j), dtype = torch.bool, device = device).triu(j - i + 1)
            sim = sim.masked_fill(causal_mask, -torch.finfo(sim.dtype).max)

        attn = self.attend(sim)
        attn = self.dropout(attn)

        out = einsum('b h i j, b h j d -> b h i d', attn, v)
        return self.out_proj(rearrange(out, 'b h n d -> b n (h d)'))
