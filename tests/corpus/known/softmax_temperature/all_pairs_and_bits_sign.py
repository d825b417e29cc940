# mistake: every_query_with_every_key + entropy_without_sign
import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if temperature <= 0.0:
        raise ValueError("the temperature must be > 0")
    logits = (scores.double() - scores.double().max(-1, keepdim=True).values) / temperature
    log_w = logits - torch.logsumexp(logits, dim=-1, keepdim=True)
    return log_w.exp().type_as(scores)


def entropy(weights: Tensor) -> Tensor:
    logs = torch.where(weights > 0, weights, torch.ones_like(weights)).log()
    return (weights * logs).sum(dim=-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    products = queries @ keys.transpose(-2, -1)
    return products.flatten(-2).var(dim=-1, unbiased=False)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores / d_key**0.5
