# right: everything but the naive softmax computed in float64 and cast back
from collections.abc import Callable
from functools import wraps

import torch
from torch import Tensor


def in_double(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Compute in float64, return in the dtype of the argument."""

    @wraps(function)
    def wrapper(argument: Tensor) -> Tensor:
        return function(argument.double()).to(argument.dtype)

    return wrapper


@in_double
def scores_by_loops(inputs: Tensor) -> Tensor:
    n = inputs.shape[0]
    rows = []
    for i in range(n):
        rows.append(torch.stack([torch.sum(inputs[i] * inputs[j]) for j in range(n)]))
    return torch.stack(rows)


@in_double
def scores_by_product(inputs: Tensor) -> Tensor:
    return inputs @ inputs.mT


@in_double
def normalise(scores: Tensor) -> Tensor:
    return scores / scores.sum(-1, keepdim=True)


def softmax_naive(scores: Tensor) -> Tensor:
    e = scores.exp()
    return e / e.sum(-1, keepdim=True)


@in_double
def softmax_stable(scores: Tensor) -> Tensor:
    return softmax_naive(scores - scores.amax(-1, keepdim=True))


@in_double
def context_vectors(inputs: Tensor) -> Tensor:
    return softmax_stable(scores_by_product(inputs)) @ inputs
