# mistake: divided_by_the_kept_share
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
