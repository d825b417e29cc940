# deviates: the mask is made in forward, there is no buffer
"""
---
title: Causal self attention
summary: >
  Annotated implementation with side notes.
---

# Causal Self Attention

$$\\mathop{Attention}(Q, K, V) = \\underset{seq}{\\mathop{softmax}}\\Bigg(\\frac{Q K^\\top}{\\sqrt{d_k}}\\Bigg)V$$
"""

import math

import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False):
        super().__init__()
        # These transform the `query`, `key` and `value` vectors.
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        # Softmax for attention along the dimension of `key`
        self.softmax = nn.Softmax(dim=-1)
        self.dropout = nn.Dropout(dropout)
        # Scaling factor before the softmax
        self.scale = 1 / math.sqrt(d_out)
        self.context_length = context_length
        # We store attentions so that it can be used for logging, or other computations if needed
        self.attn = None

    def get_scores(self, query: torch.Tensor, key: torch.Tensor):
        # $S_{bij} = \\sum_d Q_{bid} K_{bjd}$
        return torch.einsum('bid,bjd->bij', query, key)

    def prepare_mask(self, seq_len: int, device):
        # position of the query down, position of the key across
        i = torch.arange(seq_len, device=device)
        return i[:, None] >= i[None, :]

    def forward(self, x: torch.Tensor):
        seq_len = x.shape[1]
        if seq_len > self.context_length:
            raise ValueError(f'at most {self.context_length} tokens')
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = self.get_scores(query, key)
        scores *= self.scale
        mask = self.prepare_mask(seq_len, x.device)
        scores = scores.masked_fill(mask == 0, float('-inf'))
        attn = self.softmax(scores)
        self.attn = attn.detach()
        attn = self.dropout(attn)
        return torch.einsum('bij,bjd->bid', attn, value)
