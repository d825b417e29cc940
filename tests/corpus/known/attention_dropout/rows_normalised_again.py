# mistake: normalised_again
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    """Drop weights; what is left is shared out so that it is a distribution again."""
    if not 0.0 <= rate <= 1.0:
        raise ValueError("0 <= rate <= 1")
    if not training or rate == 0:
        return weights
    keep = torch.rand(weights.shape) >= rate
    left = weights * keep
    total = left.sum(dim=-1, keepdim=True)
    return left / torch.where(total == 0, torch.ones_like(total), total)
