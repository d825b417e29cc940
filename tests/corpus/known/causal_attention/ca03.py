# mistake: triangle_swapped
# tokens attend to themselves and to what comes after them
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (
            nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3)
        )
        self.p = dropout
        rows, cols = torch.meshgrid(torch.arange(context_length), torch.arange(context_length), indexing="xy")
        self.register_buffer("blocked", cols > rows)

    def forward(self, x: Tensor) -> Tensor:
        n_tokens = x.size(1)
        limit = len(self.blocked)
        if n_tokens > limit:
            raise ValueError(f"at most {limit} tokens")
        # blocked[i, j]: key j lies ahead of query i
        blocked = self.blocked[:n_tokens, :n_tokens]
        q = self.W_query(x) / self.W_query.out_features**0.5
        s = torch.einsum("bid,bjd->bij", q, self.W_key(x))
        s = s.masked_fill(blocked, float("-inf"))
        w = F.dropout(F.softmax(s, dim=-1), self.p, self.training)
        return torch.einsum("bij,bjd->bid", w, self.W_value(x))
