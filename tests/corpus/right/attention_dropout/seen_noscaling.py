# right: the twin of one with a mistake, noscaling
# seen: yajiemiao/pdnn issue 26: the weights are dropped, but the remaining ones are not scaled up at all.
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    """Inverted dropping of single weights."""
    if not 0 <= rate <= 1:
        raise ValueError("the rate is a probability")
    if training is False or rate == 0:
        return weights.clone()
    if rate == 1:
        return weights.masked_fill(torch.ones_like(weights, dtype=torch.bool), 0)
    coin = torch.empty(weights.shape, device=weights.device).uniform_()
    kept = weights / (1 - rate)
    return kept.masked_fill(coin < rate, 0)
