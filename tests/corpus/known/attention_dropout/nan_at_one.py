# mistake: nan_at_rate_one
# rate 1 divides 0 by 0, so the result is nan instead of zeros
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    """Inverted: the survivors are scaled up."""
    if not (0 <= rate <= 1):
        raise ValueError("not a probability")
    if training:
        kept = torch.rand(weights.size(), device=weights.device) < 1.0 - rate
        return weights * kept / (1.0 - rate)
    return weights
