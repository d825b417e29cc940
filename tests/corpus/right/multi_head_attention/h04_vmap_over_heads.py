import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    """Heads in front; vmap runs the scores of one head for all of them."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out is not a multiple of num_heads")
        self.num_heads = num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.causal = causal
        if causal:
            self.register_buffer("future", torch.ones(context_length, context_length).triu(1).bool(), persistent=False)

    def by_head(self, t):
        return torch.movedim(t.reshape(*t.shape[:-1], self.num_heads, t.shape[-1] // self.num_heads), -2, 0)

    def forward(self, x: Tensor) -> Tensor:
        n = x.size(1)
        if n > self.context_length:
            raise ValueError("too long")
        q, k, v = (self.by_head(w(x)) for w in (self.W_query, self.W_key, self.W_value))

        def head_weights(q, k):
            s = torch.matmul(q, k.transpose(-2, -1)) * q.shape[-1] ** -0.5
            return s.masked_fill(self.future[:n, :n], float("-inf")) if self.causal else s

        w = self.dropout(torch.vmap(head_weights)(q, k).softmax(-1))
        return self.out_proj((w @ v).movedim(0, -2).flatten(-2))
