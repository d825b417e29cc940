# mistake: not in the catalogue: a die with ten faces is rolled, so a rate such as 0.25 acts as 0.3
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    """Roll a die with ten faces for every weight."""
    if rate < 0 or rate > 1:
        raise ValueError(f"rate must be in [0, 1], is {rate}")
    if not training:
        return weights
    if rate == 1:
        return weights * 0
    die = torch.randint(0, 10, weights.shape)
    return (weights / (1 - rate)).masked_fill(die < 10 * rate, 0.0)
