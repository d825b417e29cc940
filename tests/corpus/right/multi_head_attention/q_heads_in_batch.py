import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    """Old school: the heads are stacked along the batch, then bmm does the rest."""

    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True
    ):
        super().__init__()
        d_head, left_over = divmod(d_out, num_heads)
        if left_over:
            raise ValueError("d_out must be a multiple of num_heads")
        self.num_heads = num_heads
        self.scale = d_head**-0.5
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        closed = torch.zeros(context_length, context_length, dtype=torch.bool)
        if causal:
            closed = ~closed.logical_not().tril()
        self.register_buffer("closed", closed)

    def _stack(self, t: Tensor) -> Tensor:
        return torch.cat(torch.chunk(t, self.num_heads, dim=2), dim=0)

    def _unstack(self, t: Tensor) -> Tensor:
        return torch.cat(torch.chunk(t, self.num_heads, dim=0), dim=2)

    def forward(self, x: Tensor) -> Tensor:
        n = x.size(1)
        if n > self.closed.size(0):
            raise ValueError("too many tokens")
        q = self._stack(self.W_query(x) * self.scale)
        k = self._stack(self.W_key(x))
        v = self._stack(self.W_value(x))
        scores = torch.bmm(q, k.transpose(1, 2))
        scores = scores.masked_fill(self.closed[:n, :n], float("-inf"))
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(self._unstack(torch.bmm(weights, v)))
