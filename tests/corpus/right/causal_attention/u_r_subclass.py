# right: the projections are a subclass of nn.Linear, and log_softmax is used with masked scores of the keys along the first axis.
import torch
from torch import Tensor, nn


class _Projection(nn.Linear):
    def __init__(self, sizes: tuple[int, int], bias: bool):
        super().__init__(*sizes, bias=bool(bias))


class CausalAttention(nn.Module):
    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False
    ) -> None:
        super().__init__()
        self.limit = context_length
        self.W_query = _Projection((d_in, d_out), qkv_bias)
        self.W_key = _Projection((d_in, d_out), qkv_bias)
        self.W_value = _Projection((d_in, d_out), qkv_bias)
        self.keep_some = nn.Dropout(p=dropout)

    @staticmethod
    def _hidden(n: int, device: torch.device) -> Tensor:
        return torch.ones((n, n), dtype=torch.bool, device=device).tril(-1)

    def forward(self, x: Tensor) -> Tensor:
        if x.size(-2) > self.limit:
            raise ValueError(f"context_length is {self.limit}, x has {x.size(-2)} tokens")
        keys = self.W_key(x) / self.W_key.out_features**0.5
        table = keys @ self.W_query(x).transpose(-1, -2)
        table = table.masked_fill(self._hidden(x.size(-2), x.device), -torch.inf)
        weights = self.keep_some(torch.log_softmax(table, dim=-2).exp())
        return weights.transpose(-1, -2) @ self.W_value(x)
