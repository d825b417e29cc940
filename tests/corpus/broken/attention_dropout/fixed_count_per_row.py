# broken: "Every weight is dropped or kept on its own": each row drops rate * n_keys of its weights, rounded up or down at random, so the mean is right but the weights depend on each other.
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
    n_keys = weights.shape[-1]
    count = (rate * n_keys + torch.rand(weights.shape[:-1], device=weights.device)).floor()
    kept = numbers.argsort(dim=-1).argsort(dim=-1) >= count[..., None]
    return torch.where(kept, weights / (1 - rate), 0.0)
