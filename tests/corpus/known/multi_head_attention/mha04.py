# mistake: scaled_by_root_of_d_out
# scores divided by the root of the whole width
import torch
from torch import Tensor, nn
from torch.nn import functional as F


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        if d_out % num_heads > 0:
            raise ValueError("d_out % num_heads")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out, bias=True)
        self.num_heads, self.dropout, self.causal, self.context_length = num_heads, dropout, causal, context_length
        if causal:
            idx = torch.arange(context_length)
            self.register_buffer("mask", idx > idx.unsqueeze(-1))

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.size()
        if T > self.context_length:
            raise ValueError("T > context_length")
        q = self.W_query(x)
        q = q * (q.size(-1) ** -0.5)
        k, v = self.W_key(x), self.W_value(x)
        split = lambda t: t.view(B, T, self.num_heads, -1).permute(0, 2, 1, 3)  # noqa: E731
        q, k, v = split(q), split(k), split(v)
        att = q @ k.transpose(-2, -1)
        if self.causal:
            att = att.masked_fill(self.mask[:T, :T], float("-inf"))
        att = F.dropout(F.softmax(att, dim=-1), p=self.dropout, training=self.training)
        y = (att @ v).permute(0, 2, 1, 3).contiguous().view(B, T, -1)
        return self.out_proj(y)
