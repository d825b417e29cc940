# promise: additive mask from torch.full without device, used only for chunks of several tokens
import torch
from torch import nn
import torch.nn.functional as F


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
        bsz, seqlen, _ = x.shape
        start_pos = cache[0].shape[2] if cache is not None else 0
        if start_pos + seqlen > self.context_length:
            raise ValueError("sequence does not fit into the context")

        xq = self.W_query(x).reshape(bsz, seqlen, self.num_heads, self.d_head)
        xk = self.W_key(x).reshape(bsz, seqlen, self.num_heads, self.d_head)
        xv = self.W_value(x).reshape(bsz, seqlen, self.num_heads, self.d_head)
        xq, xk, xv = xq.transpose(1, 2), xk.transpose(1, 2), xv.transpose(1, 2)
        if cache is not None:
            xk = torch.cat([cache[0], xk], dim=2)
            xv = torch.cat([cache[1], xv], dim=2)

        scores = xq @ xk.transpose(2, 3) / self.d_head ** 0.5
        if seqlen > 1:
            mask = torch.full((seqlen, seqlen), float("-inf"))
            mask = torch.triu(mask, diagonal=1)
            mask = torch.hstack([torch.zeros((seqlen, start_pos)), mask]).type(x.dtype)
            scores = scores + mask
        probs = self.dropout(F.softmax(scores, dim=-1))
        output = (probs @ xv).transpose(1, 2).reshape(bsz, seqlen, -1)
        return self.out_proj(output), (xk, xv)
