# exercise: transformer_block
from typing import Optional

import torch
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


class TransformerBlock(nn.Module):
    """Encoder layer block.

    In the original paper each operation (multi-head attention or FFN) is
    postprocessed with: `dropout -> add residual -> layernorm`. In the
    tensor2tensor code they suggest that learning is more robust when
    preprocessing each layer with layernorm.
    """

    def __init__(self, d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True, causal=True):
        super().__init__()
        self.embed_dim = d_model
        self.normalize_before = norm_first
        self.attention = self.build_self_attention(d_model, num_heads, context_length, dropout, causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(self.embed_dim)
        self.norm2 = LayerNorm(self.embed_dim)
        self.dropout_module = nn.Dropout(dropout)

    def build_self_attention(self, embed_dim, heads, max_len, attention_dropout, causal):
        return MultiHeadAttention(embed_dim, embed_dim, max_len, attention_dropout, heads, causal=causal)

    def maybe_layer_norm(self, layer_norm, x, before=False, after=False):
        assert before ^ after
        if after ^ self.normalize_before:
            return layer_norm(x)
        else:
            return x

    def residual_connection(self, x, residual):
        return residual + x

    def forward(self, x, encoder_padding_mask: Optional[Tensor] = None):
        residual = x
        x = self.maybe_layer_norm(self.norm1, x, before=True)
        x = self.attention(x)
        x = self.dropout_module(x)
        x = self.residual_connection(x, residual)
        x = self.maybe_layer_norm(self.norm1, x, after=True)

        residual = x
        x = self.maybe_layer_norm(self.norm2, x, before=True)
        x = self.feed_forward(x)
        x = self.dropout_module(x)
        x = self.residual_connection(x, residual)
        x = self.maybe_layer_norm(self.norm2, x, after=True)
        return x
