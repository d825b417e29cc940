# mistake: one_variance_for_the_batch
import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if temperature <= 0:
        raise ValueError(f"temperature {temperature} is not positive")
    return torch.softmax(scores / temperature, dim=-1)


def entropy(weights: Tensor) -> Tensor:
    filled = weights.masked_fill(weights == 0, 1.0)
    return -(weights * filled.log()).sum(dim=-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    products = (queries * keys).sum(-1)
    return products.var(correction=0).expand(products.shape[:-1])


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores / d_key**0.5
