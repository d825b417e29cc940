# mistake: dropout_never_used
# the dropout layer is created and its result is thrown away
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("embedding must split evenly")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.attn_drop = nn.Dropout(dropout)
        bias = torch.zeros(context_length, context_length)
        if causal:
            bias = bias.masked_fill(torch.ones_like(bias).triu(1).bool(), float("-inf"))
        self.register_buffer("attn_bias", bias)

    def forward(self, x: Tensor) -> Tensor:
        b, n = x.shape[0], x.shape[1]
        if n > self.attn_bias.shape[0]:
            raise ValueError("n_tokens too large")
        rearrange = lambda t: t.reshape(b, n, self.num_heads, -1).movedim(2, 1)  # noqa: E731
        q, k, v = rearrange(self.W_query(x)), rearrange(self.W_key(x)), rearrange(self.W_value(x))
        scores = torch.einsum("...qd,...kd->...qk", q, k) / q.shape[-1] ** 0.5
        weights = torch.softmax(scores + self.attn_bias[:n, :n], dim=-1)
        self.attn_drop(weights)
        return self.out_proj((weights @ v).movedim(1, 2).flatten(2))
