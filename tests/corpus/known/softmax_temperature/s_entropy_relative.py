# mistake: entropy_as_a_share
import math

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if temperature <= 0:
        raise ValueError("temperature must be > 0")
    return torch.softmax(scores / temperature, dim=-1)


def entropy(weights: Tensor) -> Tensor:
    n_keys = weights.shape[-1]
    p_log_p = torch.where(weights > 0, weights * torch.where(weights > 0, weights, 1).log(), 0)
    total = -p_log_p.sum(dim=-1)
    if n_keys == 1:
        return total
    return total / math.log(n_keys)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    products = torch.einsum("...nd,...nd->...n", queries, keys)
    centred = products - products.mean(dim=-1, keepdim=True)
    return centred.square().mean(dim=-1)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores * d_key**-0.5
