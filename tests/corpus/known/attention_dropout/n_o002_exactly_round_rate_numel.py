# mistake: fixed_number_of_weights
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    """Return weights of which each is dropped with probability `rate`, and the others scaled up."""
    if rate < 0 or rate > 1:
        raise ValueError(f"rate = {rate} is not a probability")
    if not training or rate == 0:
        return weights
    if rate == 1:
        return torch.zeros_like(weights)
    # choose which of the numbers have to go
    total = weights.numel()
    n_drop = round(rate * total)
    order = torch.randperm(total, device=weights.device)
    mask = torch.ones(total, dtype=weights.dtype, device=weights.device)
    mask[order[:n_drop]] = 0
    return weights * mask.reshape(weights.shape) / (1 - rate)
