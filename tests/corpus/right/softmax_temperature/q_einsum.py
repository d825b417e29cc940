import torch
from torch import Tensor


def _shifted_exp(z: Tensor) -> Tensor:
    return torch.exp(z - z.amax(dim=-1, keepdim=True).detach())


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if not temperature > 0:
        raise ValueError(f"temperature must be positive, not {temperature}")
    numerators = _shifted_exp(scores / temperature)
    return numerators / torch.einsum("...k->...", numerators).unsqueeze(-1)


def entropy(weights: Tensor) -> Tensor:
    # surprise of a weight, -log w; a weight of 0 is looked up as 1, whose surprise is 0
    surprise = -torch.where(weights > 0, weights, torch.ones_like(weights)).log()
    return torch.einsum("...k,...k->...", weights, surprise)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    products = torch.einsum("...nd,...nd->...n", queries, keys)
    return torch.var(products, dim=-1, correction=0)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores * d_key**-0.5
