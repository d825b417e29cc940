# right: one einsum per product, and a comparison of absolute places instead of a triangular mask
import torch
from torch import Tensor, nn

Cache = tuple[Tensor, Tensor]


class CachedAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float,
                 num_heads: int, qkv_bias: bool = False) -> None:
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
        sizes = (self.num_heads, self.d_head)
        pair = [layer(x).unflatten(-1, sizes).movedim(-2, -3) for layer in (self.W_key, self.W_value)]
        if cache is not None:
            pair = [torch.cat(both, dim=-2) for both in zip(cache, pair)]
        keys, values = pair
        place = torch.arange(keys.shape[-2], device=x.device)
        if len(place) > self.context_length:
            raise ValueError(f"{len(place)} tokens, but the context is {self.context_length}")
        mine = place[-x.shape[1] :, None]
        queries = self.W_query(x).unflatten(-1, sizes)
        scores = torch.einsum("bqhd,bhkd->bhqk", queries, keys) / self.d_head**0.5
        weights = torch.where(place <= mine, scores, float("-inf")).softmax(dim=-1)
        mixed = torch.einsum("bhqk,bhkd->bqhd", self.dropout(weights), values)
        return self.out_proj(mixed.flatten(-2)), (keys, values)

