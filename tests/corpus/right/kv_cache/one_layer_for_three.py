# right: one product for all three layers, flattened heads and baddbmm with an additive mask of -inf, detached cache
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

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        layers = (self.W_query, self.W_key, self.W_value)
        weight = torch.cat([layer.weight for layer in layers])
        bias = None
        if self.W_query.bias is not None:
            bias = torch.cat([layer.bias for layer in layers])
        joined = nn.functional.linear(x, weight, bias)
        joined = joined.reshape(x.size(0), x.size(1), 3, self.num_heads, self.d_head)
        return joined.permute(2, 0, 3, 1, 4).unbind(0)

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        queries, keys, values = self.project(x)
        if cache is not None:
            keys = torch.cat([cache[0], keys], -2)
            values = torch.cat([cache[1], values], -2)
        batch, n_tokens, total = x.size(0), x.size(1), keys.size(-2)
        if total > self.context_length:
            raise RuntimeError(f"{total} tokens are too many")
        index = torch.arange(total, device=x.device)
        hidden = index > index[total - n_tokens :, None]
        mask = torch.zeros_like(hidden, dtype=x.dtype).masked_fill(hidden, float("-inf"))
        scores = torch.baddbmm(
            mask, queries.flatten(0, 1), keys.flatten(0, 1).mT, alpha=self.d_head**-0.5
        )
        weights = self.dropout(scores.softmax(-1))
        context = torch.bmm(weights, values.flatten(0, 1)).view(batch, self.num_heads, n_tokens, -1)
        output = self.out_proj(context.movedim(1, 2).reshape(batch, n_tokens, -1))
        return output, (keys.detach(), values.detach())
