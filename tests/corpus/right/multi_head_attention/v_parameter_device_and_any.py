# style: aranges on the device of a parameter (property), `if mask.any()`
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads,
                 qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("num_heads does not divide d_out")
        self.num_heads = num_heads
        self.d_head = d_out // num_heads
        self.context_length = context_length
        self.causal = causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    @property
    def device(self):
        return next(self.parameters()).device

    def hidden(self, n):
        place = torch.arange(n, device=self.device)
        if not self.causal:
            return torch.zeros_like(place, dtype=torch.bool).expand(n, n)
        return place.view(-1, 1) < place.view(1, -1)

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("too many tokens")
        q = self.W_query(x).reshape(b, n, self.num_heads, self.d_head)
        k = self.W_key(x).reshape(b, n, self.num_heads, self.d_head)
        v = self.W_value(x).reshape(b, n, self.num_heads, self.d_head)
        scores = torch.einsum("bihd,bjhd->bhij", q, k) / self.d_head ** 0.5
        hidden = self.hidden(n)
        if hidden.any():
            scores = scores.masked_fill(hidden, float("-inf"))
        weights = self.dropout(torch.softmax(scores, dim=-1))
        heads = torch.einsum("bhij,bjhd->bihd", weights, v)
        return self.out_proj(heads.reshape(b, n, -1))
