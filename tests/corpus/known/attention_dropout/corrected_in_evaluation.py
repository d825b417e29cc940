# mistake: not_rescaled + rescaled_in_evaluation
# kept weights are not scaled in training, instead all weights are multiplied by 1 - rate in evaluation
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not 0 <= rate <= 1:
        raise ValueError("rate must be from 0 to 1")
    if training:
        mask = torch.rand(weights.shape, device=weights.device) >= rate
        return weights * mask
    return weights * (1 - rate)
