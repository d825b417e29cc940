# mistake: powers_not_normalised
# seen: MoonshotAI/Kimi-Audio pull 161: the temperature divides the log-probabilities after the normalisation, so the weights do not sum to 1.
import math

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    """Softmax by way of the logarithm."""
    if temperature <= 0:
        raise ValueError("temperature must be above 0")
    log_weights = torch.log_softmax(scores, dim=-1)
    return (log_weights / temperature).exp()


def entropy(weights: Tensor) -> Tensor:
    positive = weights > 0
    logs = torch.where(positive, weights, torch.ones_like(weights)).log()
    return -torch.sum(weights * logs, dim=-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    wide = torch.promote_types(queries.dtype, torch.float32)
    products = torch.einsum("...nd,...nd->...n", queries.to(wide), keys.to(wide))
    return products.var(dim=-1, correction=0).to(queries.dtype)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores * d_key**-0.5
