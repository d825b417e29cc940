# style: unusual
import torch
from torch import Tensor, nn

Cache = tuple[Tensor, Tensor]  # keys and values, (batch, num_heads, n_cached, d_head) each


class CachedAttention(nn.Module):
    """Causal multi-head attention over a sequence that arrives in chunks.

    context_length is the largest number of tokens, those in the cache included; dropout is the
    rate at which attention weights are dropped. Raises ValueError if num_heads does not divide
    d_out.
    """

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
        """(batch, n, d_out) -> (batch, num_heads, n, d_head)"""
        return t.unflatten(-1, (self.num_heads, self.d_head)).movedim(-2, 1)

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        n_new = x.shape[1]
        n_old = 0 if cache is None else cache[0].shape[2]
        if n_old + n_new > self.context_length:
            raise ValueError(f"{n_old} + {n_new} tokens, but only {self.context_length} fit")

        q = self._heads(self.W_query(x))
        k = self._heads(self.W_key(x))
        v = self._heads(self.W_value(x))
        if cache is not None:
            k = torch.cat((cache[0], k), dim=2)
            v = torch.cat((cache[1], v), dim=2)

        # place of each query and of each key in the whole sequence
        place_k = torch.arange(n_old + n_new, device=x.device)
        place_q = place_k[n_old:]
        visible = place_k <= place_q.unsqueeze(-1)

        s = torch.einsum("bhqd,bhkd->bhqk", q, k) / self.d_head**0.5
        s = torch.where(visible, s, float("-inf"))
        w = self.dropout(s.softmax(dim=-1))
        out = torch.einsum("bhqk,bhkd->bqhd", w, v).flatten(2)
        return self.out_proj(out), (k, v)
