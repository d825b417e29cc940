# mistake: normalised_after_dropout
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).tril())

    def forward(self, x: Tensor) -> Tensor:
        _, n, _ = x.shape
        if n > self.mask.shape[0]:
            raise ValueError("n_tokens > context_length")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        s = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
        s = s.masked_fill(self.mask[:n, :n] == 0, -torch.inf)
        w = self.dropout(torch.softmax(s, -1))
        # dropout changed the sums, so make the rows sum to one again
        total = w.sum(dim=-1, keepdim=True)
        w = w / torch.where(total == 0, torch.ones_like(total), total)
        return w @ v
