import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super(MultiHeadAttention, self).__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out has to be divisible by num_heads")
        self.num_heads = num_heads
        self.d_head = d_out // num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        if causal:
            mask = torch.tril(torch.ones(context_length, context_length))
        else:
            mask = torch.ones(context_length, context_length)
        self.register_buffer("mask", mask)

    def forward(self, x):
        batch_size, n_tokens, d_in = x.shape
        if n_tokens > self.context_length:
            raise ValueError("the text is too long")

        queries = self.W_query(x)
        keys = self.W_key(x)
        values = self.W_value(x)

        queries = queries.view(batch_size, n_tokens, self.num_heads, self.d_head)
        keys = keys.view(batch_size, n_tokens, self.num_heads, self.d_head)
        values = values.view(batch_size, n_tokens, self.num_heads, self.d_head)
        queries = queries.permute(0, 2, 1, 3)
        keys = keys.permute(0, 2, 1, 3)
        values = values.permute(0, 2, 1, 3)

        scores = torch.matmul(queries, torch.transpose(keys, 2, 3))
        scores = scores / math.sqrt(self.d_head)
        mask = self.mask[:n_tokens, :n_tokens]
        scores = scores.masked_fill(mask == 0, float("-inf"))
        weights = F.softmax(scores, dim=-1)
        weights = self.dropout(weights)

        output = torch.matmul(weights, values)
        output = output.permute(0, 2, 1, 3).contiguous()
        output = output.view(batch_size, n_tokens, -1)
        output = self.out_proj(output)
        return output
