# mistake: naive_called_stable
import torch
from torch import Tensor

AXIS = -1  # keys


def scores_by_loops(inputs: Tensor) -> Tensor:
    count = len(inputs)
    out = inputs.new_empty((count, count))
    for q in range(count):
        for k in range(count):
            out[q, k] = inputs[q] @ inputs[k]
    return out


def scores_by_product(inputs: Tensor) -> Tensor:
    return torch.einsum("...qd,...kd->...qk", inputs, inputs)


def normalise(scores: Tensor) -> Tensor:
    total = scores.sum(AXIS).unsqueeze(AXIS)
    return scores / total


def softmax_naive(scores: Tensor) -> Tensor:
    powers = scores.exp()
    total = powers.sum(AXIS).unsqueeze(AXIS)
    return powers / total


def softmax_stable(scores: Tensor) -> Tensor:
    middle = scores.mean(AXIS).unsqueeze(AXIS)
    powers = (scores - middle).exp()
    total = powers.sum(AXIS).unsqueeze(AXIS)
    return powers / total


def context_vectors(inputs: Tensor) -> Tensor:
    scores = scores_by_product(inputs)
    weights = softmax_stable(scores)
    return torch.einsum("...qk,...kd->...qd", weights, inputs)
