# mistake: softmax_over_queries
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
        self.dropout = nn.Dropout(dropout)
        causal = torch.tril(torch.ones(context_length, context_length, dtype=torch.bool))
        self.register_buffer("visible", causal, persistent=False)

    def scores(self, x: Tensor) -> Tensor:
        queries = self.W_query(x) / self.W_query.out_features**0.5
        return torch.matmul(queries, self.W_key(x).mT)

    def weights(self, x: Tensor) -> Tensor:
        L = x.shape[1]
        logits = self.scores(x)
        logits = torch.where(self.visible[:L, :L], logits, -torch.inf)
        return F.softmax(logits, dim=1)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.visible.shape[0]:
            raise ValueError("more tokens than context_length")
        return torch.matmul(self.dropout(self.weights(x)), self.W_value(x))
