# mistake: normalised_again
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if rate < 0.0 or rate > 1.0:
        raise ValueError(f"bad rate {rate}")
    if not training:
        return weights
    survivors = (torch.rand(weights.shape, device=weights.device) >= rate).to(weights.dtype)
    kept = weights * survivors
    before = weights.sum(dim=-1, keepdim=True)
    after = kept.sum(dim=-1, keepdim=True)
    empty = after == 0
    return kept * (before / after.masked_fill(empty, 1.0))
