# mistake: one_mask_for_the_batch
import torch


def drop(weights, rate, training):
    if rate < 0 or rate > 1:
        raise ValueError("rate has to be from 0 to 1")
    if training and rate > 0:
        if rate == 1:
            return torch.zeros_like(weights)
        mask = torch.rand(weights.shape[-2:], device=weights.device) < (1 - rate)
        return weights.masked_fill(~mask, 0) / (1 - rate)
    return weights
