"""Reference solution: a softmax with a temperature, and why attention scores are scaled."""

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    """Return the softmax over the keys of scores / temperature.

    scores is (..., n_keys), the weights have its shape and dtype. Raises ValueError for a
    temperature that is not positive.
    """
    # --- solution
    if temperature <= 0:
        raise ValueError(f"the temperature is {temperature}, but it has to be positive")
    return torch.softmax(scores / temperature, dim=-1)  # (..., n_keys)
    # --- end


def entropy(weights: Tensor) -> Tensor:
    """Return the entropy of each row of weights in nats, where 0 log 0 counts as 0.

    weights is (..., n_keys), the entropy is (...) in the same dtype.
    """
    # --- solution
    # log 1 stands in for log 0, so that neither the entropy nor its gradient becomes nan.
    logs = weights.where(weights > 0, 1.0).log()  # (..., n_keys)
    return -(weights * logs).sum(dim=-1)  # (...)
    # --- end


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    """Return the variance of the dot products of n queries, each with the key of the same row.

    queries and keys are (..., n, d_key), the variance is (...) in the same dtype.
    """
    # --- solution
    products = (queries * keys).sum(dim=-1)  # (..., n)
    return products.var(dim=-1, correction=0)  # (...)
    # --- end


def scale(scores: Tensor, d_key: int) -> Tensor:
    """Return scores of vectors of size d_key, brought to a variance that does not depend on d_key.

    scores may have any shape, the result has its shape and dtype.
    """
    # --- solution
    return scores / d_key**0.5  # (..., n_keys)
    # --- end
