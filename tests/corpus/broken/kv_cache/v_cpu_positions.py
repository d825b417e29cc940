# promise: positions of queries and keys compared on the CPU (torch.arange without device)
import torch
from torch import nn


class CachedAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads,
                 qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("num_heads must divide d_out")
        self.num_heads = num_heads
        self.d_head = d_out // num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, cache=None):
        b, n_tokens, _ = x.shape
        q = self.W_query(x).view(b, n_tokens, self.num_heads, self.d_head).transpose(1, 2)
        k = self.W_key(x).view(b, n_tokens, self.num_heads, self.d_head).transpose(1, 2)
        v = self.W_value(x).view(b, n_tokens, self.num_heads, self.d_head).transpose(1, 2)

        offset = 0
        if cache is not None:
            past_k, past_v = cache
            offset = past_k.size(2)
            k = torch.cat((past_k, k), dim=2)
            v = torch.cat((past_v, v), dim=2)
        total = offset + n_tokens
        if total > self.context_length:
            raise ValueError("context_length exceeded")

        q_pos = torch.arange(offset, total).view(-1, 1)
        k_pos = torch.arange(total).view(1, -1)
        keep = k_pos <= q_pos

        scores = torch.matmul(q, k.transpose(-1, -2)) / (self.d_head ** 0.5)
        scores = torch.where(keep, scores, torch.tensor(float("-inf"), dtype=scores.dtype))
        weights = torch.softmax(scores, dim=-1)
        weights = self.dropout(weights)
        context = torch.matmul(weights, v).transpose(1, 2).contiguous().view(b, n_tokens, -1)
        return self.out_proj(context), (k, v)
