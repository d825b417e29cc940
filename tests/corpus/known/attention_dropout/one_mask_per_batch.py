# mistake: one_mask_for_the_batch
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if rate < 0 or rate > 1:
        raise ValueError(f"bad rate {rate}")
    if not training:
        return weights.clone()
    if rate == 1:
        return weights * 0
    mask = torch.rand(weights.shape[-2:]) >= rate
    return weights * mask / (1 - rate)
