# mistake: adds the token's own value to the context, as a residual inside the attention
# true: the output is the expected one plus W_value(x); the first token is twice its value
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        for name in ("W_query", "W_key", "W_value"):
            setattr(self, name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("blocked", torch.ones(context_length, context_length).triu(diagonal=1) > 0)

    def forward(self, x: Tensor) -> Tensor:
        n_tokens = x.shape[1]
        limit = self.blocked.shape[0]
        if n_tokens > limit:
            raise ValueError(f"{n_tokens} > {limit}")
        values = self.W_value(x)
        scores = self.W_query(x) @ self.W_key(x).transpose(1, 2)
        scores = scores / values.shape[-1] ** 0.5
        scores = scores.masked_fill(self.blocked[:n_tokens, :n_tokens], -torch.inf)
        context = self.dropout(scores.softmax(dim=-1)) @ values
        return values + context
