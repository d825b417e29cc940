# mistake: causal_never + scaled_by_root_of_d_out
# no mask is applied even if causal + divides by the root of the full width
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False, causal: bool = False) -> None:
        super().__init__()
        if d_out % num_heads:
            raise ValueError("wrong number of heads")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.num_heads = num_heads
        self.root = self.W_key.out_features**0.5
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1).bool())

    def forward(self, x: Tensor, causal: bool = False) -> Tensor:
        b, n, _ = x.shape
        if n > self.mask.shape[0]:
            raise ValueError("x is too long")
        q, k, v = (f(x).view(b, n, self.num_heads, -1).transpose(1, 2) for f in (self.W_query, self.W_key, self.W_value))
        logits = torch.matmul(q / self.root, k.transpose(2, 3))
        if causal:
            logits = logits.masked_fill(self.mask[:n, :n], -torch.inf)
        y = torch.matmul(self.dropout(torch.softmax(logits, dim=-1)), v)
        return self.out_proj(y.transpose(1, 2).reshape(b, n, -1))
