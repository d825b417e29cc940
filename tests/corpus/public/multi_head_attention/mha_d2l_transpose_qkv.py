# deviates: the mask is made in forward, no buffer; imports d2l in a try block
import math

import torch
from torch import nn

try:
    from d2l import torch as d2l
except ImportError:
    d2l = None


class DotProductAttention(nn.Module):
    """Scaled dot product attention with lengths per query."""

    def __init__(self, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    # Shape of queries, keys, values: (batch_size * num_heads, no. of tokens, d)
    # Shape of valid_lens: (no. of queries,) or None
    def forward(self, queries, keys, values, valid_lens=None):
        d = queries.shape[-1]
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(d)
        if valid_lens is not None:
            cols = torch.arange(keys.shape[1], device=queries.device)
            scores = scores.masked_fill(cols[None, :] >= valid_lens[:, None], float("-inf"))
        self.attention_weights = nn.functional.softmax(scores, dim=-1)
        return torch.bmm(self.dropout(self.attention_weights), values)


class MultiHeadAttention(nn.Module):
    """Multi-head attention."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_hiddens is not a multiple of num_heads")
        self.num_heads = num_heads
        self.causal = causal
        self.max_steps = context_length
        self.attention = DotProductAttention(dropout)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)

    def transpose_qkv(self, X):
        """Transposition for parallel computation of multiple attention heads."""
        # (batch_size, no. of tokens, num_heads, num_hiddens / num_heads)
        X = X.reshape(X.shape[0], X.shape[1], self.num_heads, -1)
        # (batch_size, num_heads, no. of tokens, num_hiddens / num_heads)
        X = X.permute(0, 2, 1, 3)
        # (batch_size * num_heads, no. of tokens, num_hiddens / num_heads)
        return X.reshape(-1, X.shape[2], X.shape[3])

    def transpose_output(self, X):
        """Reverse the operation of transpose_qkv."""
        X = X.reshape(-1, self.num_heads, X.shape[1], X.shape[2])
        X = X.permute(0, 2, 1, 3)
        return X.reshape(X.shape[0], X.shape[1], -1)

    def forward(self, x):
        num_steps = x.shape[1]
        if num_steps > self.max_steps:
            raise ValueError("num_steps > context_length")
        queries = self.transpose_qkv(self.W_query(x))
        keys = self.transpose_qkv(self.W_key(x))
        values = self.transpose_qkv(self.W_value(x))
        # as in the decoder of the book: query i sees i keys, counted from 1
        dec_valid_lens = torch.arange(1, num_steps + 1, device=x.device) if self.causal else None
        output = self.attention(queries, keys, values, dec_valid_lens)
        return self.out_proj(self.transpose_output(output))
