# broken: "Every weight is dropped or kept on its own": a row that would lose all its weights keeps them all, so a single key is never dropped.
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not 0 <= rate <= 1:
        raise ValueError("rate must be from 0 to 1")
    if not training or rate == 0:
        return weights
    if rate == 1:
        return torch.zeros_like(weights)
    numbers = torch.rand(weights.shape, device=weights.device)
    kept = numbers >= rate
    kept = kept | ~kept.any(dim=-1, keepdim=True)
    return torch.where(kept, weights / (1 - rate), 0.0)
