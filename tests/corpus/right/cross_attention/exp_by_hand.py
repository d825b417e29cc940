# right: Heads are folded into the batch for bmm, softmax is written as exp times mask over a guarded sum.
import torch
from feed_forward import FeedForward
from layer_norm import LayerNorm
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, d_query, d_context, d_out, dropout, num_heads, causal=False):
        super().__init__()
        if d_out % num_heads > 0:
            raise ValueError("num_heads has to divide d_out")
        self.n_head, self.causal = num_heads, causal
        self.scale = (d_out // num_heads) ** -0.5
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)

    def fold(self, t):
        B, T, C = t.size()
        return t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2).reshape(B * self.n_head, T, -1)

    def forward(self, x, context=None, key_mask=None):
        if context is not None and self.causal:
            raise ValueError("no context if causal")
        if context is None:
            context = x
        B, Tq, _ = x.size()
        Tk = context.size(1)
        mask = x.new_ones(B, Tq, Tk, dtype=torch.bool)
        if key_mask is not None:
            mask = mask & key_mask[:, None, :]
            context = context.masked_fill(key_mask.logical_not()[:, :, None], 0)
        if self.causal:
            mask = mask.tril()
        mask = mask.repeat_interleave(self.n_head, 0)
        q, k, v = self.fold(self.W_query(x)), self.fold(self.W_key(context)), self.fold(self.W_value(context))
        scores = torch.bmm(q, k.mT) * self.scale
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        top = scores.amax(dim=-1, keepdim=True).detach()
        e = (scores - top).exp().masked_fill(~mask, 0)
        total = e.sum(-1, keepdim=True)
        att = e / total.masked_fill(total == 0, 1)
        y = torch.bmm(self.drop(att), v)
        y = y.view(B, self.n_head, Tq, -1).transpose(1, 2).reshape(B, Tq, -1)
        return self.out_proj(y)


class EncoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout):
        super().__init__()
        self.attention = CrossAttention(d_model, d_model, d_model, dropout, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, key_mask=None):
        x = x + self.dropout(self.attention(self.norm1(x), key_mask=key_mask))
        x = x + self.dropout(self.feed_forward(self.norm2(x)))
        return x


class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout):
        super().__init__()
        self.self_attention = CrossAttention(d_model, d_model, d_model, dropout, num_heads, causal=True)
        self.cross_attention = CrossAttention(d_model, d_model, d_model, dropout, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.norm3 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, memory, key_mask=None, memory_mask=None):
        x = x + self.dropout(self.self_attention(self.norm1(x), key_mask=key_mask))
        x = x + self.dropout(self.cross_attention(self.norm2(x), memory, memory_mask))
        x = x + self.dropout(self.feed_forward(self.norm3(x)))
        return x
