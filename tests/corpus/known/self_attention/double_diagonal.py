# mistake: diagonal_twice
import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    n = inputs.shape[0]
    table = torch.zeros(n, n, dtype=inputs.dtype, device=inputs.device)
    for i in range(n):
        for j in range(i, n):
            table[i, j] = inputs[i] @ inputs[j]
    return table + table.T  # the other half is the mirror image


def scores_by_product(inputs: Tensor) -> Tensor:
    return inputs @ inputs.transpose(-2, -1)


def normalise(scores: Tensor) -> Tensor:
    return scores / scores.sum(dim=-1, keepdim=True)


def softmax_naive(scores: Tensor) -> Tensor:
    e = torch.exp(scores)
    return e / e.sum(dim=-1, keepdim=True)


def softmax_stable(scores: Tensor) -> Tensor:
    e = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return e / e.sum(dim=-1, keepdim=True)


def context_vectors(inputs: Tensor) -> Tensor:
    weights = softmax_stable(scores_by_product(inputs))
    return weights @ inputs
