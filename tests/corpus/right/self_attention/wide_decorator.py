# right: a decorator takes every function to float64 and back, half of the table is a mirror image
from collections.abc import Callable
from functools import wraps

import torch
from torch import Tensor


def wide(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Let the function work in float64, whatever the dtype of its argument."""

    @wraps(function)
    def outer(tensor: Tensor) -> Tensor:
        return function(tensor.to(torch.float64)).to(tensor.dtype)

    return outer


@wide
def scores_by_loops(inputs: Tensor) -> Tensor:
    """Return the dot product of each token with each token, one at a time."""
    n = len(inputs)
    cells: dict[tuple[int, int], Tensor] = {}
    for i in range(n):
        for j in range(i + 1):
            cells[i, j] = cells[j, i] = inputs[i] @ inputs[j]
    return torch.stack([cells[divmod(k, n)] for k in range(n * n)]).reshape(n, n)


@wide
def scores_by_product(inputs: Tensor) -> Tensor:
    """Return the dot product of each token with each token, all in one product."""
    return torch.matmul(inputs, inputs.mT)


@wide
def normalise(scores: Tensor) -> Tensor:
    """Divide each row of scores by its sum."""
    ones = torch.ones(scores.shape[-1], 1, dtype=scores.dtype, device=scores.device)
    return scores / (scores @ ones)


@wide
def softmax_naive(scores: Tensor) -> Tensor:
    """Return the softmax of each row, as in the formula."""
    return normalise(scores.exp())


@wide
def softmax_stable(scores: Tensor) -> Tensor:
    """Return the softmax of each row, for scores of any size."""
    return normalise((scores - scores.max(dim=-1, keepdim=True).values).exp())


@wide
def context_vectors(inputs: Tensor) -> Tensor:
    """Return the context vector of each token."""
    return softmax_stable(scores_by_product(inputs)).matmul(inputs)
