# mistake: every_query_with_every_key
# the variance is taken over all n x n products of every query with every key, and not over the n products of the same row
import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if temperature <= 0:
        raise ValueError("temperature <= 0")
    z = scores / temperature
    z = z - z.amax(dim=-1, keepdim=True)
    num = z.exp()
    return num / num.sum(dim=-1, keepdim=True)


def entropy(weights: Tensor) -> Tensor:
    logs = torch.where(weights > 0, weights, torch.ones_like(weights)).log()
    return (weights * logs).sum(dim=-1).neg()


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    products = queries @ keys.transpose(-2, -1)
    products = products.flatten(-2)
    return products.var(dim=-1, unbiased=False)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores / (d_key**0.5)
