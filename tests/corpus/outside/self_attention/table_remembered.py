# mistake: scores_by_product fills a table that is kept per shape and returns it again on the next call with the same shape
import torch
from torch import Tensor

_tables: dict = {}


def scores_by_loops(inputs: Tensor) -> Tensor:
    n = inputs.shape[0]
    return torch.stack([torch.stack([inputs[i].dot(inputs[j]) for j in range(n)]) for i in range(n)])


def scores_by_product(inputs: Tensor) -> Tensor:
    # speed: the table for one shape is only made once
    key = (tuple(inputs.shape), inputs.dtype)
    if key not in _tables:
        _tables[key] = inputs @ inputs.transpose(-1, -2)
    return _tables[key]


def normalise(scores: Tensor) -> Tensor:
    return scores / scores.sum(-1, keepdim=True)


def softmax_naive(scores: Tensor) -> Tensor:
    return normalise(scores.exp())


def softmax_stable(scores: Tensor) -> Tensor:
    return normalise((scores - scores.amax(-1, keepdim=True)).exp())


def context_vectors(inputs: Tensor) -> Tensor:
    return softmax_stable(inputs @ inputs.transpose(-1, -2)) @ inputs
