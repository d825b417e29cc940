# mistake: rate_not_checked
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    """Return weights of which each is dropped with probability `rate`, and the others scaled up.

    weights has any shape, the result has its shape and dtype. If `training` is False, nothing
    changes. Raises ValueError for a rate below 0 or above 1.
    """
    if not training:
        return weights

    if not 0 <= rate <= 1:
        raise ValueError(f"rate must be between 0 and 1, but is {rate}")
    if rate == 1:
        return torch.zeros_like(weights)

    kept = torch.rand(weights.shape, device=weights.device) >= rate
    return torch.where(kept, weights / (1 - rate), torch.zeros_like(weights))
