# mistake: nan_without_keys
# Hidden scores are -inf and nothing catches rows without any key, so they are nan.
import torch
from feed_forward import FeedForward
from layer_norm import LayerNorm
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, d_query, d_context, d_out, dropout, num_heads, causal=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.causal = causal
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, context=None, key_mask=None):
        if context is None:
            context = x
        elif self.causal:
            raise ValueError("causal attention takes no context")
        b, n_queries, _ = x.shape
        n_keys = context.shape[1]
        if key_mask is not None:
            context = context.masked_fill(~key_mask.unsqueeze(-1), 0.0)
        queries = self.W_query(x).view(b, n_queries, self.num_heads, self.head_dim).transpose(1, 2)
        keys = self.W_key(context).view(b, n_keys, self.num_heads, self.head_dim).transpose(1, 2)
        values = self.W_value(context).view(b, n_keys, self.num_heads, self.head_dim).transpose(1, 2)

        hidden = torch.zeros(1, 1, n_queries, n_keys, dtype=torch.bool, device=x.device)
        if key_mask is not None:
            hidden = hidden | ~key_mask[:, None, None, :]
        if self.causal:
            hidden = hidden | torch.ones(n_queries, n_keys, dtype=torch.bool, device=x.device).triu(1)

        attn_scores = queries @ keys.transpose(2, 3) / self.head_dim**0.5
        attn_scores = attn_scores.masked_fill(hidden, -torch.inf)
        attn_weights = torch.softmax(attn_scores, dim=-1)
        attn_weights = self.dropout(attn_weights)
        context_vec = (attn_weights @ values).transpose(1, 2).reshape(b, n_queries, -1)
        return self.out_proj(context_vec)


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
