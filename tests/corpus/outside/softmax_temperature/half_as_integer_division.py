# mistake: not in the catalogue: the exponent 1 // 2 is 0, so scale divides by 1
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
    p = weights.float() if weights.dtype in (torch.float16, torch.bfloat16) else weights
    logp = p.masked_fill(p == 0, 1.0).log()   # log 1 = 0, so zeros add nothing
    return -(p * logp).sum(-1).to(weights.dtype)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    """Variance (divided by n) of the n row-wise dot products."""
    products = (queries * keys).sum(dim=-1)
    centred = products - products.mean(dim=-1, keepdim=True)
    return (centred**2).mean(dim=-1)


def scale(scores: Tensor, d_key: int) -> Tensor:
    """Root of d_key as a power of one half."""
    return scores / d_key ** (1 // 2)
