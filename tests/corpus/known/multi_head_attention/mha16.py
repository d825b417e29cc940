# mistake: never_split
# one big head over all columns
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("num_heads should divide d_out")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.num_heads = num_heads
        self.d_head = d_out // num_heads
        self.context_length = context_length
        self.causal = causal
        if causal:
            self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1).bool())

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("too many tokens")
        # (b, n, heads, d_head) viewed as (b, n, heads * d_head): all heads in one product
        queries = self.W_query(x).view(b, n, self.num_heads * self.d_head)
        keys = self.W_key(x).view(b, n, self.num_heads * self.d_head)
        values = self.W_value(x).view(b, n, self.num_heads * self.d_head)
        attn = torch.bmm(queries, keys.transpose(1, 2)) / self.d_head**0.5
        if self.causal:
            attn = attn.masked_fill(self.mask[:n, :n], -torch.inf)
        attn = self.dropout(torch.softmax(attn, dim=-1))
        return self.out_proj(torch.bmm(attn, values))
