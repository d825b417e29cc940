# mistake: one_token_ahead
# seen: flashinfer pull 348: the comparison in the causal mask is off by one, so each token of a chunk also sees the next one.
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
        batch, n, _ = x.shape
        past = 0 if cache is None else cache[0].shape[-2]
        total = past + n
        if total > self.context_length:
            raise ValueError("the sequence is longer than context_length")

        shape = (batch, n, self.num_heads, self.d_head)
        q = self.W_query(x).reshape(shape).permute(0, 2, 1, 3)
        k = self.W_key(x).reshape(shape).permute(0, 2, 1, 3)
        v = self.W_value(x).reshape(shape).permute(0, 2, 1, 3)
        if past:
            k = torch.cat((cache[0], k), dim=-2)
            v = torch.cat((cache[1], v), dim=-2)

        q_pos = torch.arange(past, total, device=x.device)[:, None]
        k_pos = torch.arange(total, device=x.device)[None, :]
        hidden = k_pos > q_pos + 1
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * self.d_head**-0.5
        weights = torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1)
        context = torch.einsum("bhqk,bhkd->bqhd", self.dropout(weights), v)
        return self.out_proj(context.reshape(batch, n, -1)), (k, v)
