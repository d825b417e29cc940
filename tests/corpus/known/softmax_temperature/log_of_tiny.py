# mistake: epsilon_in_the_logarithm
# the entropy adds 1e-9 inside the logarithm, which is 0 in float16, so a weight of 0 gives nan there
import math

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    return torch.softmax(scores / temperature, dim=-1)


def entropy(weights: Tensor) -> Tensor:
    return -(weights * torch.log(weights + 1e-9)).sum(dim=-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    products = (queries * keys).sum(dim=-1)
    mean = products.mean(dim=-1, keepdim=True)
    return ((products - mean) ** 2).mean(dim=-1)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores / math.sqrt(d_key)
