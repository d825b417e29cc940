# mistake: divided_by_the_kept_share
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not 0 <= rate <= 1:
        raise ValueError(f"rate {rate} is not a probability")
    if not training or rate == 0:
        return weights
    keep = torch.rand(weights.shape, device=weights.device) >= rate
    if not keep.any():
        return torch.zeros_like(weights)
    share = keep.float().mean().item()
    return torch.where(keep, weights / share, 0).to(weights.dtype)
