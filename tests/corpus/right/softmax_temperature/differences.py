# note: each weight is one over a sum of exponentials of clamped differences, computed in float64
import math

import torch
from torch import Tensor

F64 = torch.float64


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if temperature <= 0:
        raise ValueError(temperature)
    x = scores.to(F64)
    # differences[..., i, j] = x_j - x_i; beyond 600 the weight is 0 in any case
    differences = (x.unsqueeze(-2) - x.unsqueeze(-1)) / temperature
    return differences.clamp(max=600.0).exp().sum(-1).reciprocal().to(scores.dtype)


def entropy(weights: Tensor) -> Tensor:
    w = weights.to(F64)
    guarded = w.clamp(min=1e-300)
    return -(w * guarded.log()).sum(-1).to(weights.dtype)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    products = queries.to(F64).mul(keys.to(F64)).sum(-1)
    variance, _ = torch.var_mean(products, dim=-1, correction=0)
    return variance.to(queries.dtype)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores.div(math.sqrt(d_key))
