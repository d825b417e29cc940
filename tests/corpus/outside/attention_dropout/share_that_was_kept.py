# mistake: not in the catalogue: divides by the share that this draw has kept, not by 1 - rate
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not 0 <= rate <= 1:
        raise ValueError(f"no such rate: {rate}")
    if not training:
        return weights
    survives = torch.rand(weights.shape) >= rate
    alive = max(1, int(survives.sum()))
    return torch.where(survives, weights * weights.numel() / alive, 0)
