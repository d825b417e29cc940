# mistake: weights_transposed
import torch
from torch import Tensor


class Rows:
    """Arithmetic on the rows (the last axis) of a tensor."""

    @staticmethod
    def total(t: Tensor) -> Tensor:
        return t.sum(dim=-1, keepdim=True)

    @staticmethod
    def peak(t: Tensor) -> Tensor:
        return t.sort(dim=-1, descending=True).values[..., :1]

    @classmethod
    def share(cls, t: Tensor) -> Tensor:
        return t.div(cls.total(t))


def scores_by_loops(inputs: Tensor) -> Tensor:
    n = inputs.shape[0]
    scores = torch.zeros_like(inputs[:, :1]).repeat(1, n)
    for i in range(n):
        for j in range(i + 1):
            product = inputs[i].dot(inputs[j])
            scores[i, j] = product
            scores[j, i] = product
    return scores


def scores_by_product(inputs: Tensor) -> Tensor:
    left, right = inputs.unsqueeze(-2), inputs.unsqueeze(-3)
    return left.mul(right).sum(dim=-1)


def normalise(scores: Tensor) -> Tensor:
    return Rows.share(scores)


def softmax_naive(scores: Tensor) -> Tensor:
    return Rows.share(scores.exp())


def softmax_stable(scores: Tensor) -> Tensor:
    return Rows.share(scores.sub(Rows.peak(scores)).exp())


def context_vectors(inputs: Tensor) -> Tensor:
    weights = softmax_stable(scores_by_product(inputs))
    return weights.unsqueeze(-1).mul(inputs.unsqueeze(-2)).sum(dim=-3)
