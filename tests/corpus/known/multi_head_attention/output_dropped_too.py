# mistake: dropout_on_the_output_too
# the output of out_proj is dropped as well (residual dropout of GPT), and not only the weights
import math

import torch
import torch.nn as nn
from torch import Tensor
from torch.nn import functional as F


class MultiHeadAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
        causal: bool = True,
    ) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.attn_dropout = nn.Dropout(dropout)
        self.resid_dropout = nn.Dropout(dropout)
        self.n_head = num_heads
        self.block_size = context_length
        self.causal = causal
        tril = torch.tril(torch.ones(context_length, context_length, dtype=torch.bool))
        self.register_buffer("bias", tril.view(1, 1, context_length, context_length))

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.size()
        if T > self.block_size:
            raise ValueError(f"sequence of {T}, block size {self.block_size}")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        C = q.size(-1)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        if self.causal:
            att = att.masked_fill(~self.bias[:, :, :T, :T], float("-inf"))
        att = F.softmax(att, dim=-1)
        att = self.attn_dropout(att)
        y = att @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.resid_dropout(self.out_proj(y))
