"""Stand-in for causal attention: the same contract, by equations and a mask made on the way."""

import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    """Attention with the exercise's interface and parameters, which runs none of torch's own."""

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
        """Map x (batch, n_tokens, d_in) to (batch, n_tokens, d_out)."""
        n_tokens = x.shape[1]
        if n_tokens > self.context_length:
            raise ValueError(f"{n_tokens} tokens exceed the context of {self.context_length}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = torch.einsum("bqd,bkd->bqk", queries, keys)  # (batch, n_tokens, n_tokens)
        scores = scores / queries.shape[-1] ** 0.5  # (batch, n_tokens, n_tokens)
        place = torch.arange(n_tokens, device=x.device)  # (n_tokens,)
        later = place > place.unsqueeze(1)  # (n_tokens, n_tokens)
        weights = scores.masked_fill(later, -torch.inf).log_softmax(dim=-1).exp()
        return torch.einsum("bqk,bkd->bqd", self.dropout(weights), values)
