import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if not temperature > 0:
        raise ValueError(f"temperature {temperature} is not above 0")
    distance = scores - scores.detach().amax(dim=-1, keepdim=True)
    return torch.softmax(distance / temperature, dim=-1)


def entropy(weights: Tensor) -> Tensor:
    one = torch.ones_like(weights)
    surprise = -torch.where(weights > 0, weights, one).log()
    return torch.einsum("...k,...k->...", weights, surprise)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    wide = torch.promote_types(queries.dtype, torch.float32)
    products = torch.linalg.vecdot(queries.to(wide), keys.to(wide), dim=-1)
    return products.var(dim=-1, correction=0).to(queries.dtype)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores * d_key**-0.5
