# mistake: no_scale
# scores go unscaled into the softmax
import torch
from torch import Tensor, nn


def split_heads(t: Tensor, num_heads: int) -> Tensor:
    b, n, d = t.shape
    return t.view(b, n, num_heads, d // num_heads).transpose(1, 2).contiguous().view(b * num_heads, n, -1)


def merge_heads(t: Tensor, num_heads: int) -> Tensor:
    bh, n, d = t.shape
    return t.view(bh // num_heads, num_heads, n, d).transpose(1, 2).reshape(bh // num_heads, n, num_heads * d)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("num_heads must divide d_out")
        self.num_heads, self.causal, self.context_length = num_heads, causal, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        if causal:
            self.register_buffer("mask", torch.tril(torch.ones(context_length, context_length)))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError("n_tokens > context_length")
        q, k, v = (split_heads(w(x), self.num_heads) for w in (self.W_query, self.W_key, self.W_value))
        scores = torch.bmm(q, k.transpose(1, 2))
        if self.causal:
            scores = scores.masked_fill(self.mask[:n, :n] == 0, float("-inf"))
        return self.out_proj(merge_heads(torch.bmm(self.dropout(scores.softmax(-1)), v), self.num_heads))
