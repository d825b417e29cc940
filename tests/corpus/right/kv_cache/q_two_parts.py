import math

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

    def _heads(self, t: Tensor) -> Tensor:
        return torch.stack(t.split(self.d_head, dim=-1), dim=1)

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        q = self._heads(self.W_query(x))
        k_new = self._heads(self.W_key(x))
        v_new = self._heads(self.W_value(x))
        batch, heads, n, d = k_new.shape
        k_old, v_old = cache if cache is not None else (k_new[:, :, :0], v_new[:, :, :0])
        n_old = k_old.size(2)
        if n_old + n > self.context_length:
            raise ValueError("the sequence is longer than the context")

        # Every earlier token may be seen; inside the chunk, only the lower triangle.
        seen = torch.matmul(q, k_old.transpose(2, 3))
        inside = torch.matmul(q, k_new.transpose(2, 3))
        future = torch.full((n, n), True, device=x.device).triu_(1)
        inside = torch.where(future, inside.new_full((), float("-inf")), inside)
        both = torch.cat((seen, inside), dim=3).div(math.sqrt(d))
        w_old, w_new = self.dropout(both.softmax(3)).split((n_old, n), dim=3)
        context = w_old.matmul(v_old) + w_new.matmul(v_new)

        y = self.out_proj(torch.cat(context.unbind(1), dim=-1))
        return y, (torch.cat((k_old, k_new), 2), torch.cat((v_old, v_new), 2))
