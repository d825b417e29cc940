import torch
import torch.nn as nn
import torch.nn.functional as F


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super(CausalAttention, self).__init__()
        self.d_out = d_out
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.tril(torch.ones(context_length, context_length)))

    def forward(self, x):
        batch_size, n_tokens, d_in = x.shape
        if n_tokens > self.context_length:
            raise ValueError("the text is too long")

        queries = self.W_query(x)
        keys = self.W_key(x)
        values = self.W_value(x)

        scores = torch.matmul(queries, torch.transpose(keys, 1, 2))
        mask = torch.where(self.mask[:n_tokens, :n_tokens] == 0, float("-inf"), 0.0)
        scores = scores + mask
        weights = F.softmax(scores, dim=-1)
        weights = self.dropout(weights)
        output = torch.matmul(weights, values)
        return output
