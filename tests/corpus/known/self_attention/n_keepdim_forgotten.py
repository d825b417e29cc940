# mistake: axis_of_the_sum_lost
import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    n = len(inputs)
    out = torch.empty(n, n, dtype=inputs.dtype, device=inputs.device)
    for i in range(n):
        for j in range(n):
            out[i, j] = inputs[i] @ inputs[j]
    return out


def scores_by_product(inputs: Tensor) -> Tensor:
    return inputs @ inputs.transpose(-2, -1)


def normalise(scores: Tensor) -> Tensor:
    return scores / scores.sum(dim=-1)


def softmax_naive(scores: Tensor) -> Tensor:
    return normalise(torch.exp(scores))


def softmax_stable(scores: Tensor) -> Tensor:
    e = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return e / e.sum(dim=-1, keepdim=True)


def context_vectors(inputs: Tensor) -> Tensor:
    return softmax_stable(scores_by_product(inputs)) @ inputs
