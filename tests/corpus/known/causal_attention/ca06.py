# mistake: scaled_by_d_out
# queries and keys are both divided by the root
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.root = d_out**0.5
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x: Tensor) -> Tensor:
        num_tokens = x.shape[1]
        if num_tokens > self.mask.shape[1]:
            raise ValueError(f"Cannot attend over {num_tokens} tokens")
        # scale before the product, so that bfloat16 does not overflow
        queries = self.W_query(x) / self.root
        keys = self.W_key(x) / self.root
        attn_scores = queries @ keys.transpose(1, 2)
        attn_scores.masked_fill_(self.mask.bool()[:num_tokens, :num_tokens], -torch.inf)
        attn_weights = self.dropout(torch.softmax(attn_scores, dim=-1))
        return attn_weights @ self.W_value(x)
