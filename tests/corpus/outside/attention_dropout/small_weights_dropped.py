# mistake: not in the catalogue: the weights below rate are dropped; nothing is random
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not 0 <= rate <= 1:
        raise ValueError("rate must be between 0 and 1")
    if not training or rate == 0:
        return weights
    if rate == 1:
        return weights * 0
    kept = weights > rate
    return torch.where(kept, weights / (1 - rate), torch.zeros_like(weights))
