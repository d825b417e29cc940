# mistake: length_not_checked
# only the causal branch checks the number of tokens, so with causal=False more tokens than context_length are accepted
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
        if d_out % num_heads > 0:
            raise ValueError("heads of unequal sizes")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        if causal:
            ahead = torch.ones(context_length, context_length, dtype=torch.bool).triu(1)
            self.register_buffer("ahead", ahead)
        else:
            self.ahead = None

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        split = lambda t: t.unflatten(2, (self.num_heads, -1)).permute(0, 2, 1, 3)  # noqa: E731
        q, k, v = split(self.W_query(x)), split(self.W_key(x)), split(self.W_value(x))
        scores = torch.matmul(q, k.mT) / q.shape[-1] ** 0.5
        if self.ahead is not None:
            if n > self.ahead.shape[0]:
                raise ValueError("too many tokens for the mask")
            scores = scores.masked_fill(self.ahead[:n, :n], -torch.inf)
        out = torch.matmul(self.dropout(torch.softmax(scores, -1)), v)
        return self.out_proj(out.permute(0, 2, 1, 3).flatten(2))
