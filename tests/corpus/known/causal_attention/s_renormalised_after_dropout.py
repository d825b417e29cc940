# mistake: normalised_after_dropout
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CausalAttention(nn.Module):
    """Single-head causal attention."""

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)
        self.p = dropout
        self.max_tokens = context_length

    def forward(self, x: Tensor) -> Tensor:
        T = x.shape[-2]
        if T > self.max_tokens:
            raise ValueError("sequence longer than context_length")
        Q, K, V = self.W_query(x), self.W_key(x), self.W_value(x)
        S = torch.bmm(Q, K.mT) / (Q.shape[-1] ** 0.5)
        pos = torch.arange(T, device=x.device)
        S = torch.where(pos[None, :] <= pos[:, None], S, float("-inf"))
        A = F.softmax(S, dim=-1)
        if self.training and self.p > 0:
            A = F.dropout(A, self.p, training=True)
            total = A.sum(-1, keepdim=True)
            A = A / total.masked_fill(total == 0, 1.0)  # rows sum to 1 again
        return torch.bmm(A, V)
