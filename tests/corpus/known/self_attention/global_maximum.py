# mistake: one_maximum_for_all_rows
# softmax_stable subtracts the largest score of the whole tensor, not of each row, so rows with much smaller scores underflow to 0 / 0
import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    n_tokens = len(inputs)
    table = inputs.new_zeros((n_tokens, n_tokens))
    for i, x_i in enumerate(inputs):
        for j, x_j in enumerate(inputs):
            table[i, j] = (x_i * x_j).sum()
    return table


def scores_by_product(inputs: Tensor) -> Tensor:
    return torch.matmul(inputs, inputs.mT)


def normalise(scores: Tensor) -> Tensor:
    return scores / scores.sum(-1, keepdim=True)


def softmax_naive(scores: Tensor) -> Tensor:
    return normalise(scores.exp())


def softmax_stable(scores: Tensor) -> Tensor:
    return softmax_naive(scores - scores.max())


def context_vectors(inputs: Tensor) -> Tensor:
    weights = softmax_stable(scores_by_product(inputs))
    return torch.matmul(weights, inputs)
