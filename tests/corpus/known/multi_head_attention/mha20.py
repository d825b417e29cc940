# mistake: length_not_checked + interleaved_heads
# no limit on the tokens + columns dealt out to the heads in turn
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("heads do not divide d_out")
        self.num_heads, self.causal = num_heads, causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        if causal:
            self.register_buffer("mask", torch.zeros(context_length, context_length, dtype=torch.bool))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        q, k, v = (
            layer(x).unflatten(-1, (-1, self.num_heads)).movedim(-1, 1)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        att = q @ k.mT * q.shape[-1] ** -0.5
        if self.causal:
            ahead = torch.arange(n, device=x.device)
            att = att.masked_fill(ahead[None, :] > ahead[:, None], float("-inf"))
        heads = self.dropout(att.softmax(-1)) @ v
        return self.out_proj(heads.transpose(1, 2).flatten(-2))
