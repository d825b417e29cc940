# deviates: the mask buffer has shape (1, T, T)
"""
minGPT-flavoured causal attention with a single head.
"""
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.nn import functional as F

# -----------------------------------------------------------------------------


@dataclass
class AttnConfig:
    n_embd: int
    head_size: int
    block_size: int
    attn_pdrop: float
    bias: bool


class CausalSelfAttention(nn.Module):

    def __init__(self, config):
        super().__init__()
        self.W_query = nn.Linear(config.n_embd, config.head_size, bias=config.bias)
        self.W_key = nn.Linear(config.n_embd, config.head_size, bias=config.bias)
        self.W_value = nn.Linear(config.n_embd, config.head_size, bias=config.bias)
        # regularization
        self.attn_dropout = nn.Dropout(config.attn_pdrop)
        # causal mask to ensure that attention is only applied to the left in the input sequence
        self.register_buffer("bias", torch.tril(torch.ones(config.block_size, config.block_size))
                                     .view(1, config.block_size, config.block_size))
        self.block_size = config.block_size

    def forward(self, x):
        B, T, C = x.size() # batch size, sequence length, embedding dimensionality (n_embd)
        if T > self.block_size:
            raise ValueError(f"Cannot forward sequence of length {T}, block size is only {self.block_size}")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)

        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:,:T,:T] == 0, float('-inf'))
        att = F.softmax(att, dim=-1)
        att = self.attn_dropout(att)
        y = att @ v # (B, T, T) x (B, T, hs) -> (B, T, hs)
        return y


class CausalAttention(CausalSelfAttention):
    """what the course wants, on top of the config"""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__(AttnConfig(n_embd=d_in, head_size=d_out, block_size=context_length,
                                    attn_pdrop=dropout, bias=qkv_bias))
