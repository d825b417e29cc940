# right: weights from logsumexp, entropy by clamping inside the logarithm, variance from squared deviations
import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if temperature > 0:
        z = scores / temperature
        return (z - z.amax(-1, True)).log_softmax(-1).exp()
    raise ValueError("temperature has to be above 0")


def entropy(weights: Tensor) -> Tensor:
    tiny = torch.finfo(weights.dtype).tiny
    return (weights * weights.clamp(min=tiny).log().neg()).sum(-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    p = torch.einsum("...nd,...nd->...n", queries, keys)
    return (p - p.mean(-1, keepdim=True)).square().mean(-1)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores * d_key**-0.5
