# right: everything in float64 inside, cast back; logsumexp, masked_fill, var(correction=0)
import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if temperature <= 0.0:
        raise ValueError("the temperature must be > 0")
    logits = (scores.double() - scores.double().max(-1, keepdim=True).values) / temperature
    log_w = logits - torch.logsumexp(logits, dim=-1, keepdim=True)
    return log_w.exp().type_as(scores)


def entropy(weights: Tensor) -> Tensor:
    w = weights.double()
    empty = w == 0
    return (w * w.masked_fill(empty, 1.0).log().neg()).sum(-1).to(weights.dtype)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    dots = torch.einsum("...i,...i->...", queries.double(), keys.double())
    return torch.var(dots, dim=-1, correction=0).to(queries.dtype)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return (scores.double() * d_key**-0.5).to(scores.dtype)
