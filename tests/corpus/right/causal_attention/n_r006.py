# style: unusual
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    """Single-head causal attention. The mask is built on the fly from two ranges."""

    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3))
        self.max_tokens = context_length
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        n = x.size(-2)
        if n > self.max_tokens:
            raise ValueError(f"{n} tokens, but the context has {self.max_tokens}")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        att = torch.einsum("bid,bjd->bij", q, k).div(q.size(-1) ** 0.5)
        place = torch.arange(n, device=x.device)
        allowed = place[:, None] >= place[None, :]
        att = torch.where(allowed, att, torch.full_like(att, -torch.inf)).softmax(-1)
        return torch.einsum("bij,bjd->bid", self.drop(att), v)
