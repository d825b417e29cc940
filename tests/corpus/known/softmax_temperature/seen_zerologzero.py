# mistake: log_of_zero
# seen: huggingface/trl pull 7263 (issue 7221): the entropy computes 0 * log 0 = 0 * -inf, which is nan for weights of 0.
import math

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if temperature <= 0:
        raise ValueError(f"{temperature=} is not above 0")
    z = scores / temperature
    e = torch.exp(z - z.amax(dim=-1, keepdim=True).detach())
    return e / e.sum(dim=-1, keepdim=True)


def entropy(weights: Tensor) -> Tensor:
    logs = torch.log(weights)
    return (weights * logs).sum(-1).neg()


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    q, k = (t if t.dtype == torch.float64 else t.float() for t in (queries, keys))
    dots = (q * k).sum(-1)
    return (dots - dots.mean(-1, keepdim=True)).pow(2).mean(-1).to(queries.dtype)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores / d_key**0.5
