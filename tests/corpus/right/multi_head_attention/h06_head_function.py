import torch
from torch import Tensor, nn


def attend(q, k, v, hidden=None, dropout=None):
    """Attention over the last two axes; any leading axes."""
    s = torch.einsum("...id,...jd->...ij", q, k) / q.size(-1) ** 0.5
    if hidden is not None:
        s = torch.where(hidden, -torch.inf, s)
    s = s - s.amax(dim=-1, keepdim=True)
    e = s.exp()
    w = e / e.sum(dim=-1, keepdim=True)
    if dropout is not None:
        w = dropout(w)
    return torch.einsum("...ij,...jd->...id", w, v)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if num_heads * (d_out // num_heads) != d_out:
            raise ValueError(f"num_heads={num_heads} does not divide d_out={d_out}")
        make = lambda: nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_query, self.W_key, self.W_value = make(), make(), make()
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.h = num_heads
        self.context_length = context_length
        self.register_buffer("hidden", ~torch.ones(context_length, context_length).bool().tril() if causal else None)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("context_length")
        hidden = None if self.hidden is None else self.hidden[:n, :n]
        q = self.W_query(x).reshape(b, n, self.h, -1).swapaxes(1, 2)
        k = self.W_key(x).reshape(b, n, self.h, -1).swapaxes(1, 2)
        v = self.W_value(x).reshape(b, n, self.h, -1).swapaxes(1, 2)
        out = attend(q, k, v, hidden, self.dropout)
        return self.out_proj(out.swapaxes(1, 2).reshape(b, n, -1))
