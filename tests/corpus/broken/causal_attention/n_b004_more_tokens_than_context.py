# promise: More tokens than context_length are not refused.
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
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_in) to (batch, n_tokens, d_out)."""
        n_tokens = x.shape[1]
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = torch.matmul(queries, keys.transpose(1, 2)) / keys.shape[-1] ** 0.5
        mask = torch.triu(torch.ones(n_tokens, n_tokens, device=x.device), diagonal=1).bool()
        scores.masked_fill_(mask, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return torch.matmul(self.dropout(weights), values)
