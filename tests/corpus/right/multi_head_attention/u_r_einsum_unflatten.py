# right: unflatten and einsum, with the heads never moved to another axis than the third.
import torch
import torch.nn.functional as F
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
        d_head, rest = divmod(d_out, num_heads)
        if rest:
            raise ValueError(f"{d_out} columns cannot be split into {num_heads} heads")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.shape = (num_heads, d_head)
        self.limit, self.rate, self.causal = context_length, dropout, causal

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.limit:
            raise ValueError(f"{n} tokens exceed {self.limit}")
        q = self.W_query(x).unflatten(-1, self.shape) * self.shape[1] ** -0.5
        k = self.W_key(x).unflatten(-1, self.shape)
        v = self.W_value(x).unflatten(-1, self.shape)
        logits = torch.einsum("bqhd,bkhd->bhqk", q, k)
        if self.causal:
            t = torch.arange(n, device=x.device)
            logits = torch.where(t[None, :] <= t[:, None], logits, -torch.inf)
        weights = F.dropout(torch.softmax(logits, -1), self.rate, self.training)
        return self.out_proj(torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(-2))
