# mistake: divided_by_rate
# seen: lmjohns3/theanets pull 123 and kaldi issue 2814: the weights that are kept are divided by the rate, not by 1 - rate (not seen at 0.5).
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not 0 <= rate <= 1:
        raise ValueError(f"a rate of {rate} is no probability")
    if not training or rate == 0:
        return weights
    if rate == 1:
        return torch.zeros_like(weights)
    keep = torch.rand(weights.shape, device=weights.device) >= rate
    return torch.where(keep, weights / rate, torch.zeros_like(weights))
