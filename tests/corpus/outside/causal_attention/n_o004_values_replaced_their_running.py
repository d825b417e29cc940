# mistake: not in the catalogue: The values are replaced by their running mean over the earlier tokens before the weighted sum.
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    """Attention in which each token attends to itself and the tokens before it."""

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
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError(f"expected at most {self.context_length} tokens, got {n}")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        blocked = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(diagonal=1)
        weights = torch.softmax(scores.masked_fill(blocked, -torch.inf), dim=-1)
        # only the past may enter a value
        steps = torch.arange(1, n + 1, device=x.device).to(v.dtype).unsqueeze(-1)
        v = v.cumsum(dim=1) / steps
        return self.dropout(weights) @ v
