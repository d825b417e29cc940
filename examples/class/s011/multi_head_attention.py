import torch
from torch import Tensor, nn

from utils import causal_mask, merge_heads, split_heads


class MultiHeadAttention(nn.Module):
    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True
    ) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("num_heads")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        mask = causal_mask(context_length)
        self.register_buffer("mask", mask if causal else torch.ones_like(mask))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.mask.shape[0]:
            raise ValueError("too many tokens")
        q = split_heads(self.W_query(x), self.num_heads)
        k = split_heads(self.W_key(x), self.num_heads)
        v = split_heads(self.W_value(x), self.num_heads)
        scores = (q @ k.mT / k.shape[-1] ** 0.5).masked_fill(~self.mask[:n, :n], -torch.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(merge_heads(weights @ v))
