import torch
from torch import Tensor, einsum, nn
from torch.nn.functional import dropout as drop_out
from torch.nn.functional import softmax


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
            raise ValueError(f"{num_heads} heads do not divide {d_out} columns")
        self.heads, self.d_head = num_heads, d_head
        self.limit, self.rate, self.causal = context_length, dropout, causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)

    def _split(self, t: Tensor) -> Tensor:
        """(b, n, h * d) -> (b, n, h, d)"""
        return t.unflatten(-1, (self.heads, self.d_head))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.limit:
            raise ValueError(f"at most {self.limit} tokens, got {n}")
        q, k, v = (self._split(w(x)) for w in (self.W_query, self.W_key, self.W_value))
        logits = einsum("bihd,bjhd->bhij", q, k) / self.d_head**0.5
        if self.causal:
            steps = torch.arange(n, device=x.device)
            logits = logits.masked_fill(steps[None, :] > steps[:, None], float("-inf"))
        w = drop_out(softmax(logits, dim=-1), self.rate, self.training)
        return self.out_proj(einsum("bhij,bjhd->bihd", w, v).flatten(2))
