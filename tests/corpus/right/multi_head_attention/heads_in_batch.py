# note: the heads are moved into the batch axis (as in d2l) and torch.bmm does the rest; a triangle of -inf made in forward takes the place of the scores of later tokens
import torch
from torch import Tensor, nn


def fold(t: Tensor, heads: int) -> Tensor:
    b, n, d = t.shape
    return t.reshape(b, n, heads, d // heads).movedim(2, 1).reshape(b * heads, n, d // heads)


def unfold(t: Tensor, heads: int) -> Tensor:
    bh, n, c = t.shape
    return t.reshape(bh // heads, heads, n, c).movedim(1, 2).reshape(bh // heads, n, heads * c)


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
        if rest != 0:
            raise ValueError("num_heads has to divide d_out")
        self.num_heads, self.d_head = num_heads, d_head
        self.context_length, self.causal = context_length, causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if not n <= self.context_length:
            raise ValueError(f"{n} > {self.context_length}")
        q, k, v = (fold(f(x), self.num_heads) for f in (self.W_query, self.W_key, self.W_value))
        scores = torch.bmm(q, k.transpose(1, 2)).div_(self.d_head**0.5)
        if self.causal:
            mask = torch.full((n, n), -torch.inf, dtype=scores.dtype, device=scores.device).triu(1)
            scores = torch.where(mask == 0, scores, mask)
        heads = torch.bmm(self.dropout(torch.softmax(scores, 2)), v)
        return self.out_proj(unfold(heads, self.num_heads))
