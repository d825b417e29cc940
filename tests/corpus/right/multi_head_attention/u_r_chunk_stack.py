# right: the heads are chunks that are stacked and unbound again, and a keyword-only function does the attention.
import torch
from torch import Tensor, nn
from torch.nn import functional as F


def _attention(q: Tensor, k: Tensor, v: Tensor, *, see: Tensor | None, drop) -> Tensor:
    scores = q @ k.transpose(-1, -2)
    scores = scores / k.size(-1) ** 0.5
    if see is not None:
        scores = scores.masked_fill(see.logical_not(), float("-inf"))
    scores = scores - scores.detach().max(dim=-1, keepdim=True).values
    e = scores.exp()
    return drop(e / e.sum(dim=-1, keepdim=True)) @ v


class MultiHeadAttention(nn.Module):
    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True
    ) -> None:
        super().__init__()
        if d_out % num_heads > 0:
            raise ValueError("heads of unequal size")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.options = dict(heads=num_heads, limit=context_length, rate=dropout, causal=causal)

    def _drop(self, w: Tensor) -> Tensor:
        return F.dropout(w, self.options["rate"], training=self.training)

    def _heads(self, t: Tensor) -> Tensor:
        return torch.stack(t.chunk(self.options["heads"], dim=-1), dim=0)

    def forward(self, x: Tensor) -> Tensor:
        n = x.size(1)
        if n > self.options["limit"]:
            raise ValueError("too many tokens for this module")
        see = None
        if self.options["causal"]:
            see = torch.ones(n, n, dtype=torch.bool, device=x.device).tril()
        parts = map(self._heads, (self.W_query(x), self.W_key(x), self.W_value(x)))
        ctx = _attention(*parts, see=see, drop=self._drop)
        return self.out_proj(torch.cat(ctx.unbind(0), dim=-1))
