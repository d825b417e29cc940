# right: einsum in float64, entropy by a masked logarithm
import torch
from torch import Tensor

WIDE = torch.float64


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    """Return the softmax over the keys of scores / temperature."""
    if temperature <= 0:
        raise ValueError(f"temperature {temperature}")
    wide = scores.to(WIDE)
    raised = torch.exp((wide - wide.amax(-1, keepdim=True)) / temperature)
    return (raised / raised.sum(-1, keepdim=True)).to(scores.dtype)


def entropy(weights: Tensor) -> Tensor:
    """Return the entropy of each row of weights in nats."""
    wide = weights.to(WIDE)
    logs = wide.masked_fill(wide == 0, 1).log()
    return torch.einsum("...k,...k->...", wide, logs).neg().to(weights.dtype)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    """Return the variance of the dot products of each query with the key of the same row."""
    products = torch.einsum("...nd,...nd->...n", queries.to(WIDE), keys.to(WIDE))
    return products.var(dim=-1, correction=0).to(queries.dtype)


def scale(scores: Tensor, d_key: int) -> Tensor:
    """Return scores / sqrt(d_key)."""
    return scores * (1 / d_key**0.5)
