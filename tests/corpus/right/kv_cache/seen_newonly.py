# right: the twin of one with a mistake, newonly
# seen: 1bit-MONSTER issue 693 and sparkinfer pull 143: the length check counts only the tokens of the call, so the cache grows past the context length.
import torch
from torch import Tensor, nn

Cache = tuple[Tensor, Tensor]


class CachedAttention(nn.Module):
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
        n_new = x.size(1)
        n_old = 0
        if cache is not None:
            n_old = cache[0].size(2)
        if n_old + n_new > self.context_length:
            raise ValueError("too many tokens for this context_length")

        def split(y: Tensor) -> Tensor:
            return y.reshape(*y.shape[:2], self.num_heads, self.d_head).transpose(1, 2)

        keys, values = split(self.W_key(x)), split(self.W_value(x))
        if cache is not None:
            keys = torch.cat([cache[0], keys], 2)
            values = torch.cat([cache[1], values], 2)
        scores = torch.matmul(split(self.W_query(x)), keys.transpose(-1, -2))
        scores = scores / self.d_head**0.5
        if n_new > 1:
            steps = torch.arange(n_old + n_new, device=x.device)
            scores = scores.masked_fill(steps > steps[n_old:, None], float("-inf"))
        weights = self.dropout(torch.softmax(scores, dim=-1))
        heads = torch.matmul(weights, values)
        return self.out_proj(heads.transpose(1, 2).flatten(-2)), (keys, values)
