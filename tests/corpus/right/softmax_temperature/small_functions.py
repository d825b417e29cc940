# right: matmul of single rows and columns, tiny helpers, clamp at the smallest positive number
import torch
from torch import Tensor


def refuse(condition: bool, reason: str) -> None:
    if condition:
        raise ValueError(reason)


def row_mean(x: Tensor) -> Tensor:
    return x.sum(dim=-1, keepdim=True) / x.shape[-1]


def dot(a: Tensor, b: Tensor) -> Tensor:
    return (a.unsqueeze(-2) @ b.unsqueeze(-1)).squeeze(-1).squeeze(-1)


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    """Return the softmax over the keys of scores / temperature."""
    refuse(temperature <= 0, "the temperature must be positive")
    return scores.div(temperature).log_softmax(dim=-1).exp()


def entropy(weights: Tensor) -> Tensor:
    """Return the entropy of each row of weights in nats."""
    info = torch.finfo(weights.dtype)
    least = info.tiny * info.eps
    return (weights * -weights.clamp(min=least).log()).sum(dim=-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    """Return the variance of the dot products of each query with the key of the same row."""
    products = dot(queries, keys)
    return row_mean((products - row_mean(products)).square()).squeeze(-1)


def scale(scores: Tensor, d_key: int) -> Tensor:
    """Return scores / sqrt(d_key)."""
    return scores.mul(d_key**-0.5)
