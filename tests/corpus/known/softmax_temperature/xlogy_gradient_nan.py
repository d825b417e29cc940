# mistake: gradient_of_zero_is_nan
import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    """Softmax of scores / temperature over the keys."""
    if not temperature > 0:
        raise ValueError(f"temperature has to be positive, not {temperature}")
    wide = scores.double()
    wide = wide - wide.amax(dim=-1, keepdim=True)
    return torch.softmax(wide / temperature, dim=-1).to(scores.dtype)


def entropy(weights: Tensor) -> Tensor:
    return -torch.xlogy(weights, weights).sum(dim=-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    prod = (queries.unsqueeze(-2) @ keys.unsqueeze(-1)).squeeze(-1).squeeze(-1)
    n = prod.shape[-1]
    mu = prod.sum(-1, keepdim=True) / n
    return (prod - mu).pow(2).sum(-1) / n


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores / d_key**0.5
