import math

import torch
from torch import Tensor, nn


class _Poids(nn.Module):
    """Scores -> poids (softmax a la main, dropout)."""

    def __init__(self, taux: float, longueur: int, causal: bool) -> None:
        super().__init__()
        self.abandon = nn.Dropout(taux)
        interdit = torch.triu(torch.ones(longueur, longueur, dtype=torch.bool), 1)
        # sans causalite rien n'est interdit
        self.register_buffer("interdit", interdit if causal else torch.zeros_like(interdit))

    def forward(self, scores: Tensor) -> Tensor:
        n = scores.shape[-1]
        precis = scores if scores.dtype == torch.float64 else scores.float()
        precis = precis.masked_fill(self.interdit[:n, :n], -math.inf)
        e = (precis - precis.amax(-1, keepdim=True)).exp()
        p = e / e.sum(-1, keepdim=True)
        return self.abandon(p.to(scores.dtype))


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int,
                 qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("num_heads doit diviser d_out")
        self.num_heads = num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.poids = _Poids(dropout, context_length, causal)

    def _decoupe(self, t: Tensor) -> Tensor:
        b, n, d = t.shape
        h = self.num_heads
        return t.reshape(b, n, h, d // h).permute(0, 2, 1, 3).reshape(b * h, n, d // h)

    def forward(self, x: Tensor) -> Tensor:
        b, n = x.shape[:2]
        if n > self.context_length:
            raise ValueError("trop de jetons")
        Q = self._decoupe(self.W_query(x))
        K = self._decoupe(self.W_key(x))
        V = self._decoupe(self.W_value(x))
        scores = torch.bmm(Q, K.transpose(1, 2)) / math.sqrt(Q.shape[2])
        tetes = torch.bmm(self.poids(scores), V)  # (b*h, n, d)
        d = tetes.shape[2]
        cote_a_cote = tetes.reshape(b, self.num_heads, n, d).transpose(1, 2).reshape(b, n, self.num_heads * d)
        return self.out_proj(cote_a_cote)
