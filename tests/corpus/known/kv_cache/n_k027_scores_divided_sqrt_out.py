# mistake: scaled_by_all_features
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


    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        """Map the next tokens x (batch, n_tokens, d_in) to (batch, n_tokens, d_out) and a cache.

        Raises ValueError for more tokens than context_length, those in the cache included.
        """
        B, T, _ = x.shape
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        d_out = q.shape[-1]
        # (B, T, d_out) -> (B, H, T, d_head)
        q = q.reshape(B, T, self.num_heads, self.d_head).permute(0, 2, 1, 3)
        k = k.reshape(B, T, self.num_heads, self.d_head).permute(0, 2, 1, 3)
        v = v.reshape(B, T, self.num_heads, self.d_head).permute(0, 2, 1, 3)

        past = 0
        if cache is not None:
            past = cache[0].size(2)
            k = torch.cat([cache[0], k], dim=2)
            v = torch.cat([cache[1], v], dim=2)
        if past + T > self.context_length:
            raise ValueError("too many tokens")

        i = torch.arange(past, past + T, device=x.device)
        j = torch.arange(past + T, device=x.device)
        scores = torch.matmul(q, k.permute(0, 1, 3, 2)) * d_out**-0.5
        scores = scores.masked_fill(j[None, :] > i[:, None], -torch.inf)
        attn = self.dropout(scores.softmax(dim=-1))
        out = torch.matmul(attn, v).permute(0, 2, 1, 3).reshape(B, T, d_out)
        return self.out_proj(out), (k, v)
