"""
# Multi-Headed Attention (MHA)

Annotated; the sequence is the first dimension inside: `[seq_len, batch_size, heads, d_k]`.
"""
import math
from typing import List, Optional

import torch
from torch import nn


class PrepareForMultiHeadAttention:
    """
    ## Prepare for multi-head attention

    Splits the vector of a linear transformation into the given number of heads.
    """

    def __init__(self, linear: nn.Linear, heads: int, d_k: int):
        self.linear = linear
        self.heads = heads
        self.d_k = d_k

    def __call__(self, x: torch.Tensor):
        # Input has shape `[seq_len, batch_size, d_model]`
        head_shape = x.shape[:-1]
        # Linear transform
        x = self.linear(x)
        # Split last dimension into heads
        return x.view(*head_shape, self.heads, self.d_k)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int,
                 qkv_bias: bool = False, causal: bool = True):
        super().__init__()
        if d_out % num_heads > 0:
            raise ValueError('heads')
        # Number of features per head
        self.d_k = d_out // num_heads
        self.heads = num_heads
        self.max_len = context_length

        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

        # Softmax for attention along the time dimension of `key`
        self.softmax = nn.Softmax(dim=1)
        # Output layer
        self.out_proj = nn.Linear(d_out, d_out)
        # Dropout
        self.dropout = nn.Dropout(dropout)
        # Scaling factor before the softmax
        self.scale = 1 / math.sqrt(self.d_k)
        self.attn: Optional[torch.Tensor] = None

        if causal:
            ones = torch.ones(context_length, context_length, dtype=torch.bool)
            self.register_buffer('mask', torch.tril(ones))
        else:
            self.mask = None

    def get_scores(self, query: torch.Tensor, key: torch.Tensor):
        # Calculate $Q K^\top$ or $S_{ijbh} = \sum_d Q_{ibhd} K_{jbhd}$
        return torch.einsum('ibhd,jbhd->ijbh', query, key)

    def prepare_mask(self, mask: torch.Tensor, n: int):
        # resulting mask has shape `[seq_len_q, seq_len_k, batch_size, heads]`
        return mask[:n, :n].unsqueeze(-1).unsqueeze(-1)

    def forward(self, x: torch.Tensor):
        if x.shape[1] > self.max_len:
            raise ValueError(f'{x.shape[1]} tokens > {self.max_len}')
        x = x.transpose(0, 1)
        seq_len, batch_size, _ = x.shape

        prepare = [PrepareForMultiHeadAttention(w, self.heads, self.d_k)
                   for w in (self.W_query, self.W_key, self.W_value)]
        query, key, value = (p(x) for p in prepare)

        scores = self.get_scores(query, key)
        scores *= self.scale
        if self.mask is not None:
            scores = scores.masked_fill(~self.prepare_mask(self.mask, seq_len), float('-inf'))

        # $\underset{seq}{softmax}$: attention along the key sequence dimension
        attn = self.softmax(scores)
        attn = self.dropout(attn)

        # Multiply by values $\sum_j A_{ijbh} V_{jbhd}$
        x = torch.einsum("ijbh,jbhd->ibhd", attn, value)
        # Save attentions for any other calculations
        self.attn = attn.detach()
        # Concatenate multiple heads
        x = x.reshape(seq_len, batch_size, -1)
        # Output layer
        return self.out_proj(x).transpose(0, 1)
