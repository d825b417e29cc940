# mistake: one_mask_for_the_queries + float32_mask
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    """Some keys are hidden."""
    if rate < 0 or rate > 1:
        raise ValueError("rate not in [0, 1]")
    if not training:
        return weights
    if rate == 1:
        return torch.zeros_like(weights) * weights
    sizes = list(weights.shape)
    if weights.dim() > 1:
        sizes[-2] = 1
    mask = (torch.rand(sizes) >= rate).float()
    return weights * mask / (1 - rate)
