# mistake: scaled_by_d_head
# scales the queries by root d_head and then the scores again
# true: scores are divided by d_head instead of its root, so the weights are too even; d_head 1 is right
import math
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"{num_heads=} must divide {d_out=}")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.n_head, self.d_k, self.p, self.causal = num_heads, d_out // num_heads, dropout, causal
        self.block_size = context_length
        if causal:
            self.register_buffer("bias", torch.tril(torch.ones(context_length, context_length)))

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.size()
        if T > self.block_size:
            raise ValueError("block size exceeded")
        q = self.W_query(x) / math.sqrt(self.d_k)
        q = q.view(B, T, self.n_head, self.d_k).transpose(1, 2)
        k = self.W_key(x).view(B, T, self.n_head, self.d_k).transpose(1, 2)
        v = self.W_value(x).view(B, T, self.n_head, self.d_k).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        if self.causal:
            att = att.masked_fill(self.bias[:T, :T] == 0, float("-inf"))
        att = F.dropout(F.softmax(att, dim=-1), self.p, self.training)
        y = (att @ v).transpose(1, 2).contiguous().view(B, T, -1)
        return self.out_proj(y)
