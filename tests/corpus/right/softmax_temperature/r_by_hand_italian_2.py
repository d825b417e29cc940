import math

import torch
from torch import Tensor


def _alta(t: Tensor) -> Tensor:
    """float16 e bfloat16 diventano float32; gli altri restano."""
    return t if t.dtype == torch.float64 else t.float()


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if temperature <= 0:
        raise ValueError("la temperatura deve essere positiva")
    z = _alta(scores)
    z = (z - z.max(dim=-1, keepdim=True)[0]) / temperature
    e = torch.exp(z)
    return (e / e.sum(dim=-1, keepdim=True)).to(scores.dtype)


def entropy(weights: Tensor) -> Tensor:
    w = _alta(weights)
    zero = w == 0
    # 0 log 0 = 0: il logaritmo di 1 al posto di quello di 0
    termini = w * w.masked_fill(zero, 1.0).log()
    return termini.sum(-1).neg().to(weights.dtype)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    prodotti = torch.mul(_alta(queries), _alta(keys)).sum(-1)
    media = prodotti.mean(-1, keepdim=True)
    return (prodotti - media).square().mean(-1).to(queries.dtype)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return torch.div(scores, math.sqrt(d_key))
