# mistake: heads_averaged
# the mean over the heads is repeated instead of joining the heads
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        if d_out / num_heads != d_out // num_heads:
            raise ValueError("bad number of heads")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.context_length = context_length
        if causal:
            self.register_buffer("mask", torch.ones(context_length, context_length).triu(1).bool())
        else:
            self.mask = None

    def forward(self, x: Tensor) -> Tensor:
        n = x.size(1)
        if n > self.context_length:
            raise ValueError("context_length")
        q, k, v = [
            torch.stack(w(x).tensor_split(self.num_heads, dim=2)) for w in (self.W_query, self.W_key, self.W_value)
        ]  # heads first: (num_heads, batch, n_tokens, d_head)
        scores = q @ k.transpose(-1, -2) / q.size(-1) ** 0.5
        if self.mask is not None:
            scores = scores.masked_fill(self.mask[:n, :n], float("-inf"))
        heads = self.dropout(scores.softmax(-1)) @ v
        combined = heads.mean(dim=0)
        return self.out_proj(combined.repeat(1, 1, self.num_heads))
