# mistake: values_from_the_key_layer
# the values are the split keys
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        assert d_out % num_heads == 0
        self.num_heads = num_heads
        self.d_head = d_out // num_heads
        self.causal = causal
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        if causal:
            self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), 1))

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("n_tokens must not exceed context_length")
        qkv = torch.cat([self.W_query(x), self.W_key(x), self.W_value(x)], dim=-1)
        qkv = qkv.view(b, n, 3, self.num_heads, self.d_head).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[-2]
        scores = (q * self.d_head**-0.5) @ k.transpose(-2, -1)
        if self.causal:
            scores = scores.masked_fill(self.mask[:n, :n].bool(), -torch.inf)
        out = self.dropout(scores.softmax(-1)) @ v
        return self.out_proj(out.transpose(1, 2).flatten(2))
