# mistake: unbiased_variance
# the variance divides by n - 1 (the default of torch.var), and is nan for a single product
import torch
import torch.nn.functional as F
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if not temperature > 0:
        raise ValueError(f"bad temperature {temperature}")
    return F.softmax(scores / temperature, -1)


def entropy(weights: Tensor) -> Tensor:
    zero = weights == 0
    safe = weights.masked_fill(zero, 1.0)
    return -(weights * safe.log()).sum(-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    dots = torch.einsum("...nd,...nd->...n", queries, keys)
    return torch.var(dots, dim=-1)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores * d_key**-0.5
