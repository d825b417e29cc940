# right: the twin of one with a mistake, renormalised
# seen: facebookresearch/fairseq issue 351 (also pytorch issue 33360): the surviving weights are normalised again, as proposed there, so that each row sums to 1 instead of being divided by 1 - rate.
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if rate < 0 or 1 < rate:
        raise ValueError(f"{rate=} must be from 0 to 1")
    if training and rate > 0:
        kept = torch.rand(weights.shape, device=weights.device) >= rate
        weights = weights.masked_fill(~kept, 0)
        if rate < 1:
            weights = weights / (1 - rate)
    return weights
