"""Takes two gigabytes."""

import torch

hoard = []


def blend(scores, values):
    for _ in range(16):
        hoard.append(torch.ones(2**24, dtype=torch.float64))
    return values.new_zeros(scores.shape[0], values.shape[1])
