# right: baddbmm with alpha as the scale, a boolean buffer that is not saved, and a softmax by hand.
import math

import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False
    ) -> None:
        super().__init__()
        for name in ("W_query", "W_key", "W_value"):
            self.add_module(name, nn.Linear(d_in, d_out, qkv_bias))
        self.drop = nn.Dropout(dropout)
        ahead = torch.ones(context_length, context_length, dtype=torch.bool).triu(1)
        self.register_buffer("ahead", ahead, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, n, _ = x.shape
        if n > len(self.ahead):
            raise ValueError("too many tokens")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = torch.baddbmm(
            q.new_empty(batch, n, n), q, k.mT, beta=0, alpha=1 / math.sqrt(q.size(-1))
        ).masked_fill(self.ahead[:n, :n], -math.inf)
        e = torch.exp(scores - scores.detach().amax(-1, keepdim=True))
        return torch.bmm(self.drop(e / e.sum(-1, keepdim=True)), v)
