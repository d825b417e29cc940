# deviates: the mask buffer has shape (1, 1, T, T) and is made for causal=False as well
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.nn import functional as F


@dataclass
class GPTConfig:
    block_size: int = 1024
    n_head: int = 12
    n_in: int = 768
    n_embd: int = 768
    dropout: float = 0.0
    bias: bool = True
    is_causal: bool = True


class CausalSelfAttention(nn.Module):

    def __init__(self, config):
        super().__init__()
        assert config.n_embd % config.n_head == 0
        # query, key, value projections for all heads
        self.W_query = nn.Linear(config.n_in, config.n_embd, bias=config.bias)
        self.W_key = nn.Linear(config.n_in, config.n_embd, bias=config.bias)
        self.W_value = nn.Linear(config.n_in, config.n_embd, bias=config.bias)
        # output projection
        self.out_proj = nn.Linear(config.n_embd, config.n_embd)
        # regularization
        self.attn_dropout = nn.Dropout(config.dropout)
        self.n_head = config.n_head
        self.n_embd = config.n_embd
        self.config = config
        self.register_buffer("bias", torch.tril(torch.ones(config.block_size, config.block_size))
                                    .view(1, 1, config.block_size, config.block_size))

    def forward(self, x):
        B, T, _ = x.size()
        C = self.n_embd
        if T > self.config.block_size:
            raise ValueError(f"sequence of {T}, block size {self.config.block_size}")

        # calculate query, key, values for all heads in batch and move head forward to be the batch dim
        k = self.W_key(x).view(B, T, self.n_head, C // self.n_head).transpose(1, 2) # (B, nh, T, hs)
        q = self.W_query(x).view(B, T, self.n_head, C // self.n_head).transpose(1, 2) # (B, nh, T, hs)
        v = self.W_value(x).view(B, T, self.n_head, C // self.n_head).transpose(1, 2) # (B, nh, T, hs)

        # manual implementation of attention (no flash)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        if self.config.is_causal:
            att = att.masked_fill(self.bias[:,:,:T,:T] == 0, float('-inf'))
        att = F.softmax(att, dim=-1)
        att = self.attn_dropout(att)
        y = att @ v # (B, nh, T, T) x (B, nh, T, hs) -> (B, nh, T, hs)
        y = y.transpose(1, 2).contiguous().view(B, T, C) # re-assemble all head outputs side by side

        return self.out_proj(y)


class MultiHeadAttention(CausalSelfAttention):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__(GPTConfig(block_size=context_length, n_head=num_heads, n_in=d_in,
                                   n_embd=d_out, dropout=dropout, bias=qkv_bias, is_causal=causal))
