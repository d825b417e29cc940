# right: the twin of one with a mistake, rateone
# seen: pytorch pull 1833 and google/flax pull 2055: at rate 1 the mask 0 is divided by 0, which gives nan instead of zeros.
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if rate < 0 or rate > 1:
        raise ValueError("rate must be between 0 and 1")
    if not training:
        return weights
    survive = 1 - rate
    if survive == 0:
        return weights.new_zeros(weights.shape)
    mask = torch.bernoulli(torch.full(weights.shape, float(survive), device=weights.device))
    return weights * mask.to(weights.dtype) / survive
