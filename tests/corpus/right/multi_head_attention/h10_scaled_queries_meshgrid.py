import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    """The scale is folded into the queries."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads > 0:
            raise ValueError("d_out cannot be divided")
        for n in ("query", "key", "value"):
            setattr(self, "W_" + n, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.out_proj = nn.Linear(d_out, d_out)
        self.num_heads = num_heads
        self.d_head = d_out // num_heads
        self.dropout_rate = dropout
        self.causal = causal
        self.context_length = context_length
        if causal:
            rows, cols = torch.meshgrid(torch.arange(context_length), torch.arange(context_length), indexing="ij")
            self.register_buffer("later", cols > rows)

    def shape(self, t):
        b, n, _ = t.shape
        return t.reshape(b, n, self.num_heads, self.d_head).permute(0, 2, 1, 3)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError("input longer than context_length")
        q = self.shape(self.W_query(x)) * self.d_head**-0.5
        k = self.shape(self.W_key(x))
        scores = q.matmul(k.transpose(2, 3))
        if self.causal:
            scores = scores.masked_fill(self.later[None, None, :n, :n], float("-inf"))
        w = nn.functional.dropout(torch.softmax(scores, -1), self.dropout_rate, training=self.training)
        out = w.matmul(self.shape(self.W_value(x)))
        return self.out_proj(out.permute(0, 2, 1, 3).flatten(2, 3))
