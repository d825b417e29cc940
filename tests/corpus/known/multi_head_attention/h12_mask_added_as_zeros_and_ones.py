# mistake: mask_of_ones_added
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("bad num_heads")
        self.nheads = num_heads
        self.context_length = context_length
        self.causal = causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        if causal:
            self.register_buffer("attn_mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x: Tensor) -> Tensor:
        b, n = x.shape[:2]
        if n > self.context_length:
            raise ValueError("n_tokens > context_length")

        def to_heads(t):
            return t.view(b, n, self.nheads, -1).transpose(1, 2)

        query, key, value = to_heads(self.W_query(x)), to_heads(self.W_key(x)), to_heads(self.W_value(x))
        energy = torch.matmul(query, key.transpose(-1, -2)) / (key.size(-1) ** 0.5)
        if self.causal:
            energy = energy + self.attn_mask[:n, :n]
        attention = self.dropout(torch.softmax(energy, dim=-1))
        x = torch.matmul(attention, value).transpose(1, 2).contiguous().view(b, n, -1)
        return self.out_proj(x)
