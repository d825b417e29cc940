import math

import torch


class _Survival:
    """Every weight lives for an exponential time; it is kept if it outlives `deadline`.

    P(time >= deadline) = exp(-deadline) = 1 - rate.
    """

    def __init__(self, rate):
        if rate < 0 or rate > 1 or rate != rate:
            raise ValueError("the rate is a probability")
        self.deadline = math.inf if rate == 1 else -math.log1p(-rate)
        self.factor = 0.0 if rate == 1 else 1.0 / (1.0 - rate)

    def __call__(self, weights):
        times = torch.zeros(weights.size(), dtype=torch.float32, device=weights.device)
        times.exponential_()
        return torch.where(times >= self.deadline, weights * self.factor, weights.new_zeros(()))


def drop(weights, rate, training):
    survival = _Survival(rate)
    return survival(weights) if training else weights.clone()
