# broken: "normalise divides each score by the sum of its row, whatever the signs are": 1e-8 is added to the sum, which is wrong for small sums.
import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    rows = []
    for a in inputs:
        row = []
        for b in inputs:
            row.append(torch.dot(a, b))
        rows.append(torch.stack(row))
    return torch.stack(rows)


def scores_by_product(inputs: Tensor) -> Tensor:
    return inputs @ inputs.transpose(-2, -1)


def normalise(scores: Tensor) -> Tensor:
    return scores / (scores.sum(dim=-1, keepdim=True) + 1e-8)


def softmax_naive(scores: Tensor) -> Tensor:
    powers = torch.exp(scores)
    return powers / powers.sum(dim=-1, keepdim=True)


def softmax_stable(scores: Tensor) -> Tensor:
    powers = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return powers / powers.sum(dim=-1, keepdim=True)


def context_vectors(inputs: Tensor) -> Tensor:
    weights = softmax_stable(scores_by_product(inputs))
    return weights @ inputs
