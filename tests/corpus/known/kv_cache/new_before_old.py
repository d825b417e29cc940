# mistake: new_before_old

import torch
from torch import Tensor, nn

Cache = tuple[Tensor, Tensor]  # keys and values, (batch, num_heads, n_cached, d_head) each


class CachedAttention(nn.Module):
    """Causal multi-head attention over a sequence that arrives in chunks."""

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"{num_heads} heads do not divide d_out = {d_out}")
        self.context_length = context_length
        self.num_heads = num_heads
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        B, T, _ = x.shape
        H, D = self.num_heads, self.d_head
        K = self.W_key(x).unflatten(-1, (H, D)).transpose(1, 2)
        V = self.W_value(x).unflatten(-1, (H, D)).transpose(1, 2)
        Q = self.W_query(x).unflatten(-1, (H, D)).transpose(1, 2)
        if cache is not None:
            K, V = (torch.cat(pair, dim=-2) for pair in zip((K, V), cache, strict=True))
        S = K.shape[-2]
        if S > self.context_length:
            raise ValueError("context_length exceeded")
        allowed = torch.ones(T, S, dtype=torch.bool, device=x.device).tril(diagonal=S - T)
        A = (Q @ K.mT) / D**0.5
        A = A.masked_fill(~allowed, float("-inf")).softmax(dim=-1)
        Y = self.dropout(A) @ V
        return self.out_proj(Y.transpose(1, 2).flatten(-2)), (K, V)
