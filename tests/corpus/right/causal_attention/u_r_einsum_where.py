# right: einsum, torch.where with a comparison of positions made in forward, and functional dropout.
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False
    ) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.context_length, self.rate, self.scale = context_length, dropout, d_out**-0.5

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError(f"{n} tokens, but at most {self.context_length} are possible")
        t = torch.arange(n, device=x.device)
        s = torch.einsum("bid,bjd->bij", self.W_query(x), self.W_key(x)) * self.scale
        s = torch.where(t[:, None] >= t[None, :], s, torch.full_like(s, -torch.inf))
        p = F.dropout(s.softmax(-1), self.rate, self.training)
        return torch.einsum("bij,bjd->bid", p, self.W_value(x))
