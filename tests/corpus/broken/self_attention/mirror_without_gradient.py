# broken: "Gradients reach the argument of all six functions": the mirrored half of scores_by_loops is detached, so half of the gradient is missing.
import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    rows = []
    for i, a in enumerate(inputs):
        row = []
        for j, b in enumerate(inputs):
            row.append(torch.dot(a, b) if j >= i else rows[j][i].detach())
        rows.append(torch.stack(row))
    return torch.stack(rows)


def scores_by_product(inputs: Tensor) -> Tensor:
    return inputs @ inputs.transpose(-2, -1)


def normalise(scores: Tensor) -> Tensor:
    return scores / scores.sum(dim=-1, keepdim=True)


def softmax_naive(scores: Tensor) -> Tensor:
    powers = torch.exp(scores)
    return powers / powers.sum(dim=-1, keepdim=True)


def softmax_stable(scores: Tensor) -> Tensor:
    powers = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return powers / powers.sum(dim=-1, keepdim=True)


def context_vectors(inputs: Tensor) -> Tensor:
    weights = softmax_stable(scores_by_product(inputs))
    return weights @ inputs
