# mistake: scaled_by_d_out
import torch
from torch import Tensor, nn
from torch.nn import functional as F


class CausalAttention(nn.Module):
    """Single-head attention that cannot look ahead."""

    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False
    ):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (
            nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3)
        )
        self.do = nn.Dropout(dropout)
        causal = torch.tril(torch.ones(context_length, context_length, dtype=torch.bool))
        self.register_buffer("lower", causal, persistent=False)

    def scores(self, x: Tensor) -> Tensor:
        Q = self.W_query(x) / self.W_query.out_features
        return torch.matmul(Q, self.W_key(x).mT)

    def weights(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        a = self.scores(x)
        a = torch.where(self.lower[:n, :n], a, -torch.inf)
        return F.softmax(a, dim=2)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.lower.shape[0]:
            raise ValueError("more tokens than context_length")
        return torch.matmul(self.do(self.weights(x)), self.W_value(x))
