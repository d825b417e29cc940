# mistake: diagonal_twice
import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    size = inputs.shape[0]
    half = torch.zeros(size, size, dtype=inputs.dtype, device=inputs.device)
    for row in range(size):
        for col in range(row, size):
            half[row, col] = inputs[row] @ inputs[col]
    return half + half.T


def scores_by_product(inputs: Tensor) -> Tensor:
    return torch.einsum("...ik,...jk->...ij", inputs, inputs)


def normalise(scores: Tensor) -> Tensor:
    return scores * (1 / scores.sum(-1, keepdim=True))


def softmax_naive(scores: Tensor) -> Tensor:
    return normalise(scores.exp())


def softmax_stable(scores: Tensor) -> Tensor:
    return normalise((scores - scores.topk(1, dim=-1).values).exp())


def context_vectors(inputs: Tensor) -> Tensor:
    return softmax_stable(scores_by_product(inputs)).matmul(inputs)
