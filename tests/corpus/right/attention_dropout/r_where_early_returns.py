import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not 0 <= rate <= 1:
        raise ValueError(f"a rate is between 0 and 1, not {rate}")
    if not training or rate == 0:
        return weights
    if rate == 1:
        return torch.zeros_like(weights)
    # drawn in float64, whatever the dtype of the weights is: bfloat16 knows too few numbers below 1
    luck = torch.rand(weights.shape, dtype=torch.float64, device=weights.device)
    scaled = weights / (1 - rate)
    return torch.where(luck < rate, torch.zeros((), dtype=scaled.dtype, device=scaled.device), scaled)
