# mistake: heads_joined_to_the_batch
# batch and heads are folded together without moving the head axis forward
import math

import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        assert d_out % num_heads == 0, "num_heads has to divide d_out"
        self.h = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.attn_dropout = nn.Dropout(dropout)
        self.max_len = context_length
        visible = torch.ones(context_length, context_length)
        self.register_buffer("visible", (visible.tril() if causal else visible).bool())

    def forward(self, x: Tensor) -> Tensor:
        bsz, tgt_len, _ = x.shape
        if tgt_len > self.max_len:
            raise ValueError("x has more tokens than context_length")
        d_out = self.out_proj.in_features
        d_head = d_out // self.h
        # one big bmm over batch * heads
        q = self.W_query(x).reshape(bsz * self.h, tgt_len, d_head)
        k = self.W_key(x).reshape(bsz * self.h, tgt_len, d_head)
        v = self.W_value(x).reshape(bsz * self.h, tgt_len, d_head)
        att = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(d_head)
        att = att.masked_fill(~self.visible[:tgt_len, :tgt_len], float("-inf"))
        att = self.attn_dropout(torch.softmax(att, dim=-1))
        return self.out_proj(torch.bmm(att, v).reshape(bsz, tgt_len, d_out))
