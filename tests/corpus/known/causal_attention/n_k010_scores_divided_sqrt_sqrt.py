# mistake: scaled_by_root_of_d_in
import math

import torch
from torch import Tensor, nn


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
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.scale = math.sqrt(d_in)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_in) to (batch, n_tokens, d_out)."""
        T = x.size(1)
        if T > self.context_length:
            raise ValueError(f"{T} > {self.context_length}")
        Q, K, V = self.W_query(x), self.W_key(x), self.W_value(x)
        S = torch.bmm(Q, K.mT) / self.scale
        causal = torch.tril(torch.ones(T, T, dtype=torch.bool, device=x.device))
        S = S.masked_fill(causal.logical_not(), float("-inf"))
        A = self.dropout(S.softmax(dim=-1))
        return torch.bmm(A, V)
