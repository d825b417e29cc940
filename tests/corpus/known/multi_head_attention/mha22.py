# mistake: out_proj_never_used + dropout_before_softmax
# the joined heads are returned + scores are dropped before the mask and the softmax
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        if d_out % num_heads:
            raise ValueError(num_heads)
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.score_drop = nn.Dropout(dropout)
        self.context_length = context_length
        self.register_buffer("mask", torch.full((context_length,) * 2, -torch.inf).triu(1) if causal else None)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError("too many tokens")
        q, k, v = (torch.stack(w(x).chunk(self.num_heads, -1), 1) for w in (self.W_query, self.W_key, self.W_value))
        s = self.score_drop(q @ k.mT / q.shape[-1] ** 0.5)
        if self.mask is not None:
            s = s + self.mask[:n, :n]
        return torch.cat((s.softmax(-1) @ v).unbind(dim=1), dim=-1)
