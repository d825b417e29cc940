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
        q, k, v = (
            torch.einsum("bnhd->bhnd", W(x).unflatten(-1, (self.num_heads, self.d_head)))
            for W in (self.W_query, self.W_key, self.W_value)
        )
        if cache is not None:
            k, v = (torch.cat(pair, dim=-2) for pair in zip(cache, (k, v)))
        n_all, n_new = k.shape[-2], x.shape[-2]
        if n_all > self.context_length:
            raise ValueError(f"{n_all} tokens are more than {self.context_length}")

        place = torch.arange(n_all, device=x.device)
        later = place > place[n_all - n_new :, None]
        scores = torch.einsum("bhid,bhjd->bhij", q, k) / self.d_head**0.5
        weights = scores.masked_fill(later, -torch.inf).softmax(dim=-1)
        context = torch.einsum("bhij,bhjd->bihd", self.dropout(weights), v)
        return self.out_proj(context.flatten(2)), (k, v)
