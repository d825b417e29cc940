# mistake: one_mask_for_the_batch
# one mask of shape (n_queries, n_keys) is drawn and shared by all batch items
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if rate < 0.0 or rate > 1.0:
        raise ValueError("rate outside of [0, 1]")
    if not training or rate == 0:
        return weights
    if rate == 1:
        return weights * 0
    keep = (torch.rand(weights.shape[-2:], device=weights.device) > rate).to(weights.dtype)
    return keep * weights / (1.0 - rate)
