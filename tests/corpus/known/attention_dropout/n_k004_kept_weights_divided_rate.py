# mistake: not_rescaled
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    """Return weights of which each is dropped with probability `rate`, and the others scaled up.

    weights has any shape, the result has its shape and dtype. If `training` is False, nothing
    changes. Raises ValueError for a rate below 0 or above 1.
    """
    if rate < 0 or rate > 1:
        raise ValueError("invalid rate")
    if not training:
        return weights
    mask = torch.rand(weights.shape, device=weights.device) >= rate
    return weights * mask.to(weights.dtype)
