# mistake: heads_of_several_items
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int,
                 qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        if d_out % num_heads > 0:
            raise ValueError("num_heads")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.causal = causal
        self.context_length = context_length

    def fold(self, t: Tensor) -> Tensor:
        return torch.cat(t.chunk(self.num_heads, dim=-1), dim=0)  # (heads * batch, n, d_head)

    def forward(self, x: Tensor) -> Tensor:
        batch, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("sequence too long")
        q, k, v = self.fold(self.W_query(x)), self.fold(self.W_key(x)), self.fold(self.W_value(x))
        scores = torch.bmm(q, k.transpose(1, 2)) / q.shape[-1] ** 0.5
        if self.causal:
            later = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(diagonal=1)
            scores = scores.masked_fill(later, float("-inf"))
        out = torch.bmm(self.dropout(torch.softmax(scores, dim=-1)), v)
        out = out.view(batch, self.num_heads, n, v.size(-1)).transpose(1, 2)
        return self.out_proj(out.flatten(2))
