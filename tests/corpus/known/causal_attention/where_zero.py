# mistake: multiplied_by_mask
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
        self.attn_dropout = nn.Dropout(dropout)
        causal = torch.tril(torch.ones(context_length, context_length, dtype=torch.bool))
        self.register_buffer("causal", causal, persistent=False)

    def scores(self, x: Tensor) -> Tensor:
        q = self.W_query(x) / self.W_query.out_features**0.5
        return torch.matmul(q, self.W_key(x).mT)

    def weights(self, x: Tensor) -> Tensor:
        T = x.shape[1]
        s = self.scores(x)
        s = torch.where(self.causal[:T, :T], s, 0.0)
        return F.softmax(s, dim=2)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.causal.shape[0]:
            raise ValueError("more tokens than context_length")
        return torch.matmul(self.attn_dropout(self.weights(x)), self.W_value(x))
