# mistake: heads_of_several_items
# seen: gazelle93's repository of position encodings, issue 1. Mistake: heads are stacked in front of the batch but merged as if the batch came first, so batch items and heads get mixed up.
import math

import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
        causal: bool = True,
    ) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("num_heads has to divide d_out")
        self.num_heads, self.head_dim = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.causal = causal
        blocked = torch.triu(torch.ones(context_length, context_length, dtype=torch.bool), 1)
        self.register_buffer("blocked", blocked, persistent=False)

    def _stack(self, t: Tensor) -> Tensor:
        # one head after the other along the first axis
        return torch.cat(t.split(self.head_dim, dim=-1), dim=0)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        if length > self.blocked.shape[0]:
            raise ValueError(f"at most {self.blocked.shape[0]} tokens")
        query = self._stack(self.W_query(x))
        key = self._stack(self.W_key(x))
        value = self._stack(self.W_value(x))

        scores = query @ key.mT / math.sqrt(self.head_dim)
        if self.causal:
            scores = scores.masked_fill(self.blocked[:length, :length], -math.inf)
        output = self.dropout(scores.softmax(-1)) @ value

        output = output.view(batch, self.num_heads, length, self.head_dim)
        output = output.permute(0, 2, 1, 3).contiguous()
        return self.out_proj(output.view(batch, length, self.num_heads * self.head_dim))
