# mistake: not in the catalogue: subtracts the maximum of the scores from the scores already divided, so exp overflows when cold and underflows when hot
import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    m = scores.max(dim=-1, keepdim=True).values   # so that exp stays small
    e = torch.exp(scores / temperature - m)
    return e / e.sum(dim=-1, keepdim=True)


def entropy(weights: Tensor) -> Tensor:
    """Entropy in nats, 0 log 0 = 0."""
    safe = torch.where(weights > 0, weights, torch.ones_like(weights))
    return -(weights * safe.log()).sum(dim=-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    dots = torch.einsum("...nd,...nd->...n", queries, keys)
    return dots.var(dim=-1, unbiased=False)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores / d_key**0.5
