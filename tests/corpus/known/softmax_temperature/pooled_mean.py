# mistake: one_mean_for_the_batch
import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    x = scores.double()
    x = x - x.max(dim=-1, keepdim=True).values
    return torch.softmax(x / temperature, dim=-1).to(scores.dtype)


def entropy(weights: Tensor) -> Tensor:
    p = weights.float() if weights.dtype in (torch.float16, torch.bfloat16) else weights
    logp = p.masked_fill(p == 0, 1.0).log()   # log 1 = 0, so zeros add nothing
    return -(p * logp).sum(-1).to(weights.dtype)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    products = (queries * keys).sum(-1)
    return ((products - products.mean()) ** 2).mean(-1)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores / d_key**0.5
