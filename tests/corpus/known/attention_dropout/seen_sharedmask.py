# mistake: one_mask_for_the_batch
# seen: clab/dynet pull 812: one mask is drawn and used for every sentence of the batch.
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not (0.0 <= rate <= 1.0):
        raise ValueError(f"rate {rate} is not in [0, 1]")
    if not training:
        return weights
    if rate == 1.0:
        return torch.zeros_like(weights)
    shape = weights.shape[1:] if weights.dim() > 2 else weights.shape
    dropped = torch.rand(shape, device=weights.device) < rate
    return (weights / (1.0 - rate)).masked_fill(dropped, 0.0)
