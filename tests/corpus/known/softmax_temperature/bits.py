# mistake: entropy_in_bits
# the entropy is measured in bits (logarithm to base 2) and not in nats
import math

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    """Sharp for a low temperature, even for a high one."""
    if temperature <= 0:
        raise ValueError("The temperature has to be above 0.")
    return (scores / temperature).softmax(dim=-1)


def entropy(weights: Tensor) -> Tensor:
    """Shannon: - sum p log2 p."""
    p = weights
    log_p = torch.log2(torch.where(p == 0, torch.ones_like(p), p))
    return -(p * log_p).sum(-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    dot = (queries * keys).sum(-1)
    return dot.var(-1, correction=0)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores / math.sqrt(d_key)
