# deviates: layers created key, value, query; a bad num_heads raises AssertionError
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    """Multi-headed attention, time first inside.

    See "Attention Is All You Need" for more details.
    """

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        self.embed_dim = d_out
        self.num_heads = num_heads
        self.dropout_module = nn.Dropout(dropout)

        self.head_dim = d_out // num_heads
        assert self.head_dim * num_heads == self.embed_dim, "embed_dim must be divisible by num_heads"
        self.scaling = self.head_dim**-0.5

        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out, bias=True)

        self.self_attention = True
        self.context_length = context_length
        if causal:
            future = torch.zeros(context_length, context_length).fill_(float("-inf")).triu(1)
            self.register_buffer("attn_mask", future)
        else:
            self.attn_mask = None

    def forward(self, x) -> Tensor:
        query = x.transpose(0, 1)
        tgt_len, bsz, _ = query.size()
        embed_dim = self.embed_dim
        if tgt_len > self.context_length:
            raise ValueError("tgt_len > context_length")

        q = self.W_query(query)
        k = self.W_key(query)
        v = self.W_value(query)
        q *= self.scaling

        q = q.contiguous().view(tgt_len, bsz * self.num_heads, self.head_dim).transpose(0, 1)
        k = k.contiguous().view(-1, bsz * self.num_heads, self.head_dim).transpose(0, 1)
        v = v.contiguous().view(-1, bsz * self.num_heads, self.head_dim).transpose(0, 1)
        src_len = k.size(1)

        attn_weights = torch.bmm(q, k.transpose(1, 2))
        assert list(attn_weights.size()) == [bsz * self.num_heads, tgt_len, src_len]

        if self.attn_mask is not None:
            attn_weights += self.attn_mask[:tgt_len, :src_len].unsqueeze(0)

        attn_probs = self.dropout_module(F.softmax(attn_weights, dim=-1))
        attn = torch.bmm(attn_probs, v)
        attn = attn.transpose(0, 1).contiguous().view(tgt_len, bsz, embed_dim)
        attn = self.out_proj(attn)
        return attn.transpose(0, 1)
