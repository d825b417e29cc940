# right: the longer cache is a fresh empty tensor into which old and new parts are copied; softmax by hand in float32

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
        batch, n_new, _ = x.shape
        n_old = cache[0].shape[2] if cache is not None else 0
        n_all = n_old + n_new
        if n_all > self.context_length:
            raise ValueError(f"{n_all} tokens are more than {self.context_length}")

        grown = []
        for which, layer in enumerate((self.W_key, self.W_value)):
            new = layer(x).unflatten(2, (self.num_heads, self.d_head))
            room = new.new_empty(batch, self.num_heads, n_all, self.d_head)
            if cache is not None:
                room[:, :, :n_old] = cache[which]
            room[:, :, n_old:] = new.movedim(1, 2)
            grown.append(room)
        keys, values = grown

        queries = self.W_query(x).unflatten(2, (self.num_heads, self.d_head)).movedim(1, 2)
        scores = queries @ keys.mT
        wide = torch.promote_types(scores.dtype, torch.float32)
        scores = scores.to(wide) * self.d_head**-0.5
        step = torch.arange(n_all, device=x.device) - torch.arange(n_old, n_all, device=x.device)[:, None]
        scores = scores.masked_fill(step > 0, -torch.inf)
        powers = (scores - scores.amax(-1, keepdim=True).detach()).exp()
        weights = (powers / powers.sum(-1, keepdim=True)).to(values.dtype)
        context = self.dropout(weights) @ values
        return self.out_proj(context.movedim(2, 1).flatten(2)), (keys, values)
