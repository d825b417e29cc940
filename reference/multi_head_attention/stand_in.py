"""Stand-in for multi-head attention: the same contract, computed by torch's own kernel."""

import torch.nn.functional as F
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    """Attention with the exercise's interface and parameters, computed by torch."""

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
            raise ValueError(f"{num_heads} heads do not divide d_out = {d_out}")
        self.context_length = context_length
        self.num_heads = num_heads
        self.causal = causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_in) to (batch, n_tokens, d_out)."""
        n_tokens = x.shape[1]
        if n_tokens > self.context_length:
            raise ValueError(f"{n_tokens} tokens exceed the context of {self.context_length}")
        queries, keys, values = (
            layer(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for layer in (self.W_query, self.W_key, self.W_value)
        )  # (batch, heads, n_tokens, d_head) each
        output = F.scaled_dot_product_attention(
            queries,
            keys,
            values,
            dropout_p=self.dropout.p if self.training else 0.0,
            is_causal=self.causal,
        )  # (batch, heads, n_tokens, d_head)
        return self.out_proj(output.transpose(1, 2).flatten(2))  # (batch, n_tokens, d_out)
