# right: einsum over heads, mask from absolute positions with torch.where, F.dropout
import torch
from torch import Tensor, nn

Cache = tuple[Tensor, Tensor]  # keys and values, (batch, num_heads, n_cached, d_head) each


class CachedAttention(nn.Module):
    """Causal multi-head attention over a sequence that arrives in chunks."""

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
        def heads(layer: nn.Linear) -> Tensor:
            return layer(x).unflatten(-1, (self.num_heads, self.d_head)).movedim(-2, 1)

        queries, keys, values = heads(self.W_query), heads(self.W_key), heads(self.W_value)
        start = 0 if cache is None else cache[0].size(2)
        end = start + x.size(1)
        if end > self.context_length:
            raise ValueError(f"{end} tokens are more than {self.context_length}")
        if cache is not None:
            keys = torch.cat((cache[0], keys), dim=2)
            values = torch.cat((cache[1], values), dim=2)
        scores = torch.einsum("bhqd,bhkd->bhqk", queries, keys) / self.d_head**0.5
        place = torch.arange(end, device=x.device)
        visible = place <= place[start:].unsqueeze(1)
        weights = torch.where(visible, scores, -torch.inf).softmax(dim=-1)
        context = torch.einsum("bhqk,bhkd->bqhd", self.dropout(weights), values)
        return self.out_proj(context.flatten(-2)), (keys, values)
