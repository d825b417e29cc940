# promise: In eval mode the mask grows, so more tokens than context_length are not refused.
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False
    ) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.context_length = context_length
        self.register_buffer("visible", self._visible(context_length), persistent=False)

    @staticmethod
    def _visible(n: int, device=None) -> Tensor:
        return torch.ones(n, n, dtype=torch.bool, device=device).tril()

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length and self.training:
            raise ValueError("more tokens than context_length")
        if n > self.visible.shape[0]:
            self.visible = self._visible(n, x.device)
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        s = torch.einsum("bid,bjd->bij", q, k) * q.shape[-1] ** -0.5
        w = s.masked_fill(~self.visible[:n, :n], -torch.inf).softmax(-1)
        return torch.einsum("bij,bjd->bid", self.dropout(w), v)
