# mistake: one_token_ahead
# every token also sees the next one
import math

import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    """One head of causal self-attention."""

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        self.context_length = context_length
        self.d_out = d_out
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)
        self.attn_drop = nn.Dropout(dropout)
        pos = torch.arange(context_length)
        # query i in the rows, key j in the columns; the first i+1 keys are visible
        n_visible = pos + 1
        self.register_buffer("visible", pos[None, :] <= n_visible[:, None])

    def forward(self, x: Tensor) -> Tensor:
        _, T, _ = x.shape
        if T > self.context_length:
            raise ValueError("sequence too long")
        att = self.W_query(x) @ self.W_key(x).mT / math.sqrt(self.d_out)
        att = torch.where(self.visible[:T, :T], att, float("-inf"))
        return self.attn_drop(torch.softmax(att, dim=-1)) @ self.W_value(x)
