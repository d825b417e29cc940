# right: the mask compares numbers of tokens, products by einsum, new keys are written into a tensor made for all tokens
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
        n = x.size(1)
        heads = {
            name: getattr(self, name)(x).unflatten(-1, (self.num_heads, self.d_head))
            for name in ("W_query", "W_key", "W_value")
        }
        k, v = heads["W_key"].movedim(1, 2), heads["W_value"].movedim(1, 2)
        past = 0
        if cache is not None:
            past = cache[0].size(-2)
        if past + n > self.context_length:
            raise ValueError("context_length")
        if cache is not None:
            grown = []
            for old, new in zip(cache, (k, v)):
                both = new.new_zeros(*new.shape[:2], past + n, self.d_head)
                both[:, :, :past] = old
                both[:, :, past:] = new
                grown.append(both)
            k, v = grown
        s = torch.einsum("bqhd,bhkd->bhqk", heads["W_query"], k) * self.d_head**-0.5
        number = torch.arange(past + n, device=x.device)
        s = torch.where(number <= number[past:, None], s, s.new_tensor(float("-inf")))
        w = self.dropout(s.softmax(-1))
        out = torch.einsum("bhqk,bhkd->bqhd", w, v).flatten(2)
        return self.out_proj(out), (k, v)
