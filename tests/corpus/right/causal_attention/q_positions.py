import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CausalAttention(nn.Module):
    """No buffer: who may look at whom follows from the positions, compared in forward."""

    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False
    ) -> None:
        super().__init__()
        self.limit = context_length
        self.rate = dropout
        self.W_query, self.W_key, self.W_value = (
            nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3)
        )

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.limit:
            raise ValueError(f"{n} tokens, but at most {self.limit} are allowed")
        q = self.W_query(x) * self.W_query.out_features**-0.5
        s = torch.einsum("bie,bje->bij", q, self.W_key(x))
        place = torch.arange(n, device=x.device)
        s = torch.where(place[:, None] >= place, s, -torch.inf)
        w = F.dropout(F.softmax(s, dim=-1), p=self.rate, training=self.training)
        return torch.einsum("bij,bje->bie", w, self.W_value(x))
