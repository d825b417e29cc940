# mistake: axis_of_the_sum_lost
# in normalise the row sums lose their axis (no keepdim), so score i, j is divided by the sum of row j, or the shapes do not fit
import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    n = inputs.shape[0]
    rows = []
    for i in range(n):
        row = []
        for j in range(n):
            row.append(torch.dot(inputs[i], inputs[j]))
        rows.append(torch.stack(row))
    return torch.stack(rows)


def scores_by_product(inputs: Tensor) -> Tensor:
    return inputs @ inputs.transpose(-2, -1)


def normalise(scores: Tensor) -> Tensor:
    return scores / scores.sum(dim=-1)


def softmax_naive(scores: Tensor) -> Tensor:
    e = torch.exp(scores)
    return e / e.sum(dim=-1, keepdim=True)


def softmax_stable(scores: Tensor) -> Tensor:
    e = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return e / e.sum(dim=-1, keepdim=True)


def context_vectors(inputs: Tensor) -> Tensor:
    return softmax_stable(scores_by_product(inputs)) @ inputs
