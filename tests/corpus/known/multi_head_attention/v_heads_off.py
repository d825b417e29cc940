# mistake: whole_heads_dropped
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
        causal: bool = True,
    ) -> None:
        super().__init__()
        if d_out % num_heads:
            raise ValueError
        self.shape = (num_heads, d_out // num_heads)
        self.context_length = context_length
        self.causal = causal
        self.p = dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)

    def factors(self, w: Tensor) -> Tensor:
        if self.p >= 1:
            return torch.zeros_like(w)
        draw = torch.rand(w.shape[:2], device=w.device)[..., None, None]
        return ((draw >= self.p) / (1 - self.p)).to(w.dtype)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError
        q = self.W_query(x).unflatten(2, self.shape).transpose(1, 2)
        k = self.W_key(x).unflatten(2, self.shape).transpose(1, 2)
        v = self.W_value(x).unflatten(2, self.shape).transpose(1, 2)
        s = q.matmul(k.mT).mul(self.shape[1] ** -0.5)
        if self.causal:
            s = s + torch.full((n, n), -torch.inf, device=s.device, dtype=s.dtype).triu(1)
        w = s.softmax(3)
        if self.training:
            w = w * self.factors(w)
        return self.out_proj(w.matmul(v).transpose(1, 2).flatten(2))
