"""Reference solution: inverted dropout by hand."""

import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    """Return weights of which each is dropped with probability `rate`, and the others scaled up.

    weights has any shape, the result has its shape and dtype. If `training` is False, nothing
    changes. Raises ValueError for a rate below 0 or above 1.
    """
    # --- solution
    if not 0 <= rate <= 1:
        raise ValueError(f"the rate is {rate}, but it has to be between 0 and 1")
    if not training:
        return weights  # (..., n_keys)
    # In float32 whatever the weights are: half precision has few numbers between 0 and 1.
    numbers = torch.rand(weights.shape, device=weights.device)  # (..., n_keys), from 0 up to 1
    kept = numbers >= rate  # (..., n_keys), True with probability 1 - rate
    factor = 1 / (1 - rate) if rate < 1 else 0.0
    return weights * kept * factor  # (..., n_keys)
    # --- end
