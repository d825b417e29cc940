# style: unusual
import math

import torch
from torch import Tensor, nn


def masked_weights(scores: Tensor, hidden: Tensor) -> Tensor:
    """Softmax written out, `hidden` is True where a key may not be seen."""
    scores = scores.masked_fill(hidden, float("-inf"))
    top = scores.max(dim=-1, keepdim=True).values
    exps = torch.exp(scores - top)
    return exps / exps.sum(dim=-1, keepdim=True)


class CausalAttention(nn.Module):
    """Attention in which each token attends to itself and the tokens before it.

    d_in and d_out are the sizes of a token's input and output vector; context_length is the
    largest number of tokens; dropout is the rate at which attention weights are dropped.
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        self.d_out = d_out
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        future = torch.ones(context_length, context_length, dtype=torch.bool).triu(1)
        self.register_buffer("future", future, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        n_tokens = x.shape[1]
        context_length = self.future.shape[0]
        if n_tokens > context_length:
            raise ValueError(f"at most {context_length} tokens, please")
        queries = self.W_query(x) / math.sqrt(self.d_out)
        scores = queries @ self.W_key(x).transpose(1, 2)
        weights = masked_weights(scores, self.future[:n_tokens, :n_tokens])
        return self.dropout(weights) @ self.W_value(x)
