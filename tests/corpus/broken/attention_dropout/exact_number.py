# broken: "Every weight is dropped or kept on its own": each weight is dropped with probability rate, but the number of dropped weights in a call is always rate * numel (rounded at random), as if drawn without replacement
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must be from 0 to 1, not {rate}")
    if not training or rate == 0:
        return weights
    if rate == 1:
        return torch.zeros_like(weights)
    n_dropped = int(rate * weights.numel() + torch.rand(()).item())
    order = torch.randperm(weights.numel(), device=weights.device)
    keep = (order >= n_dropped).reshape(weights.shape)
    return weights * keep / (1 - rate)
