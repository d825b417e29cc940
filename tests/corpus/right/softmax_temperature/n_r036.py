# style: unusual
import torch
import torch.nn.functional as F
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    """Return the softmax over the keys of scores / temperature.

    scores is (..., n_keys), the weights have its shape and dtype. Raises ValueError for a
    temperature that is not positive.
    """
    if temperature <= 0:
        raise ValueError("temperature must be above 0")
    return F.softmax(scores / temperature, dim=-1)


def entropy(weights: Tensor) -> Tensor:
    """Return the entropy of each row of weights in nats, where 0 log 0 counts as 0."""
    positive = weights > 0
    logs = torch.log(torch.where(positive, weights, torch.ones_like(weights)))
    return -torch.where(positive, weights * logs, torch.zeros_like(weights)).sum(dim=-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    """Return the variance of the dot products of n queries, each with the key of the same row."""
    q, k = queries.to(torch.float64), keys.to(torch.float64)
    products = (q * k).sum(dim=-1)
    deviation = products - products.mean(dim=-1, keepdim=True)
    return (deviation**2).mean(dim=-1).to(queries.dtype)


def scale(scores: Tensor, d_key: int) -> Tensor:
    """Return scores of vectors of size d_key, brought to a variance that does not depend on d_key."""
    return scores * d_key**-0.5
