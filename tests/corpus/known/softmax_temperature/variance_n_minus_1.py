# mistake: unbiased_variance
import math

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if temperature <= 0.0:
        raise ValueError("the temperature must be > 0")
    logits = (scores.double() - scores.double().max(-1, keepdim=True).values) / temperature
    log_w = logits - torch.logsumexp(logits, dim=-1, keepdim=True)
    return log_w.exp().type_as(scores)


def entropy(weights: Tensor) -> Tensor:
    p = weights.float() if weights.dtype in (torch.float16, torch.bfloat16) else weights
    logp = p.masked_fill(p == 0, 1.0).log()   # log 1 = 0, so zeros add nothing
    return -(p * logp).sum(-1).to(weights.dtype)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    """How much the products spread."""
    products = (queries * keys).sum(-1)
    return products.var(dim=-1)


def scale(scores: Tensor, d_key: int) -> Tensor:
    """Divide by the root of d_key."""
    return scores / math.sqrt(d_key)
