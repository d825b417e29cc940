# mistake: table_in_float32 + scores_for_weights
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
    scores = scores.float()
    top = scores.max(AXIS)[0].unsqueeze(AXIS)
    powers = (scores - top).exp()
    total = powers.sum(AXIS).unsqueeze(AXIS)
    return powers / total


def context_vectors(inputs: Tensor) -> Tensor:
    scores = scores_by_product(inputs)
    weights = normalise(scores)
    return torch.einsum("...qk,...kd->...qd", weights, inputs)
