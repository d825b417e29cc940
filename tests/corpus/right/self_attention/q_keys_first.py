"""Everything is computed with the keys on the rows and turned round at the end."""

import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    dots = [torch.dot(query, key) for query in inputs for key in inputs]
    return torch.stack(dots).unflatten(0, (len(inputs), len(inputs)))


def scores_by_product(inputs: Tensor) -> Tensor:
    features_first = inputs.movedim(-1, -2)
    return torch.matmul(inputs, features_first)


def _columns_to_one(table: Tensor) -> Tensor:
    return torch.div(table, torch.sum(table, dim=-2, keepdim=True))


def normalise(scores: Tensor) -> Tensor:
    return _columns_to_one(scores.mT).mT


def softmax_naive(scores: Tensor) -> Tensor:
    return _columns_to_one(scores.mT.exp()).mT


def softmax_stable(scores: Tensor) -> Tensor:
    table = scores.mT
    return _columns_to_one(torch.exp(table - table.amax(dim=-2, keepdim=True).detach())).mT


def context_vectors(inputs: Tensor) -> Tensor:
    weights_t = softmax_stable(scores_by_product(inputs)).mT
    return (inputs.mT @ weights_t).mT
