# broken: "The result has the dtype of the argument. It is computed in this dtype or in a more exact one": scores_by_loops of float64 goes through a float32 table.
import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    rows = []
    for a in inputs:
        row = []
        for b in inputs:
            row.append(torch.dot(a, b).to(torch.float32))
        rows.append(torch.stack(row))
    return torch.stack(rows).to(inputs.dtype)


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
