import torch
import torch.nn.functional as F
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    """Axes by letters: b batch, i query, j key, h head, c column of a head."""

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
        causal: bool = True,
    ) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"{num_heads} heads cannot share {d_out} columns")
        self.heads, self.size = num_heads, d_out // num_heads
        self.context_length, self.rate, self.causal = context_length, dropout, causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError(f"{n} tokens do not fit into {self.context_length}")
        cut = (self.heads, self.size)
        q = self.W_query(x).unflatten(-1, cut)
        k = self.W_key(x).unflatten(-1, cut)
        v = self.W_value(x).unflatten(-1, cut)
        s = torch.einsum("bihc,bjhc->bhij", q, k) / self.size**0.5
        if self.causal:
            place = torch.arange(n, device=x.device)
            s = s.masked_fill(place > place[:, None], -torch.inf)
        w = F.dropout(s.softmax(-1), self.rate, self.training)
        return self.out_proj(torch.einsum("bhij,bjhc->bihc", w, v).flatten(2))
