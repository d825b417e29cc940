# mistake: one_mask_for_the_batch
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    """Drop attention weights, scale up the rest."""
    if rate < 0.0 or rate > 1.0:
        raise ValueError("rate must be a probability")
    if not training or rate == 0.0:
        return weights
    if rate == 1.0:
        return torch.zeros_like(weights)

    table = weights.shape[-2:]
    keep = torch.rand(table, device=weights.device) >= rate
    zero = weights.new_zeros(())
    return torch.where(keep, weights / (1.0 - rate), zero)
