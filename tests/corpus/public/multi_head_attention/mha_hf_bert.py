# deviates: additive mask of finfo.min, made in forward, no buffer
import math
from typing import Optional

import torch
from torch import nn


class BertLikeSelfAttention(nn.Module):
    def __init__(self, hidden_in, hidden_size, num_attention_heads, attention_probs_dropout_prob, bias):
        super().__init__()
        if hidden_size % num_attention_heads != 0:
            raise ValueError(
                f"The hidden size ({hidden_size}) is not a multiple of the number of attention "
                f"heads ({num_attention_heads})"
            )
        self.num_attention_heads = num_attention_heads
        self.attention_head_size = int(hidden_size / num_attention_heads)
        self.all_head_size = self.num_attention_heads * self.attention_head_size

        self.W_query = nn.Linear(hidden_in, self.all_head_size, bias=bias)
        self.W_key = nn.Linear(hidden_in, self.all_head_size, bias=bias)
        self.W_value = nn.Linear(hidden_in, self.all_head_size, bias=bias)
        self.dropout = nn.Dropout(attention_probs_dropout_prob)

    def transpose_for_scores(self, x: torch.Tensor) -> torch.Tensor:
        new_x_shape = x.size()[:-1] + (self.num_attention_heads, self.attention_head_size)
        x = x.view(new_x_shape)
        return x.permute(0, 2, 1, 3)

    def self_attend(self, hidden_states: torch.Tensor, attention_mask: Optional[torch.FloatTensor] = None):
        key_layer = self.transpose_for_scores(self.W_key(hidden_states))
        value_layer = self.transpose_for_scores(self.W_value(hidden_states))
        query_layer = self.transpose_for_scores(self.W_query(hidden_states))

        # Take the dot product between "query" and "key" to get the raw attention scores.
        attention_scores = torch.matmul(query_layer, key_layer.transpose(-1, -2))
        attention_scores = attention_scores / math.sqrt(self.attention_head_size)
        if attention_mask is not None:
            # Apply the attention mask (precomputed for all layers)
            attention_scores = attention_scores + attention_mask

        # Normalize the attention scores to probabilities.
        attention_probs = nn.functional.softmax(attention_scores, dim=-1)
        # This is actually dropping out entire tokens to attend to, which might
        # seem a bit unusual, but is taken from the original paper.
        attention_probs = self.dropout(attention_probs)

        context_layer = torch.matmul(attention_probs, value_layer)
        context_layer = context_layer.permute(0, 2, 1, 3).contiguous()
        new_context_layer_shape = context_layer.size()[:-2] + (self.all_head_size,)
        return context_layer.view(new_context_layer_shape)


class MultiHeadAttention(BertLikeSelfAttention):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__(d_in, d_out, num_heads, dropout, qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.is_decoder = causal
        self.max_position_embeddings = context_length

    def get_extended_attention_mask(self, seq_length, dtype, device):
        seq_ids = torch.arange(seq_length, device=device)
        causal_mask = seq_ids[None, None, :].repeat(1, seq_length, 1) <= seq_ids[None, :, None]
        extended_attention_mask = causal_mask[:, None, :, :].to(dtype=dtype)
        return (1.0 - extended_attention_mask) * torch.finfo(dtype).min

    def forward(self, x):
        seq_length = x.shape[1]
        if seq_length > self.max_position_embeddings:
            raise ValueError(f"{seq_length} > {self.max_position_embeddings}")
        mask = self.get_extended_attention_mask(seq_length, x.dtype, x.device) if self.is_decoder else None
        return self.out_proj(self.self_attend(x, mask))
