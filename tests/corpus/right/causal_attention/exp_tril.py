# note: no -inf anywhere: rows are shifted by the maximum of their past, exponentials are cut with a boolean triangle and divided by their sum
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        self.W_query, self.W_key, self.W_value = [
            nn.Linear(d_in, d_out, bias=qkv_bias) for _ in ("query", "key", "value")
        ]
        self.limit = context_length
        self.rate = dropout

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.limit:
            raise ValueError(f"{n} tokens, at most {self.limit} allowed")
        q, k, v = (layer(x) for layer in (self.W_query, self.W_key, self.W_value))
        s = torch.einsum("bqd,bkd->bqk", q / q.shape[-1] ** 0.5, k)
        past = torch.ones(n, n, dtype=torch.bool, device=x.device).tril()
        lowest = torch.finfo(s.dtype).min
        top = torch.where(past, s, lowest).amax(-1, keepdim=True).detach()
        e = torch.where(past, torch.where(past, s - top, 0.0).exp(), 0.0)
        w = e / e.sum(-1, keepdim=True)
        return torch.einsum("bqk,bkd->bqd", nn.functional.dropout(w, self.rate, self.training), v)
