"""Stand-in for causal attention: the same contract, with the mask of torch's own Transformer.

It does without torch's attention, because what a stand-in runs counts where a later exercise
forbids it.
"""

import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    """Attention with the exercise's interface and parameters."""

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
        mask = nn.Transformer.generate_square_subsequent_mask(n_tokens, device=x.device)
        later = mask < 0  # (n_tokens, n_tokens)
        weights = scores.masked_fill(later, -torch.inf).log_softmax(dim=-1).exp()
        return torch.einsum("bqk,bkd->bqd", self.dropout(weights), values)
