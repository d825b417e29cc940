# mistake: token_leaves_itself_out
import torch
from torch import Tensor


def dot(u, v):
    return torch.sum(u * v)


def scores_by_loops(inputs: Tensor) -> Tensor:
    T = inputs.shape[0]
    att = torch.zeros(T, T, dtype=inputs.dtype)
    for i in range(T):
        for j in range(i):
            att[i, j] = dot(inputs[i], inputs[j])
    # the table is symmetric
    return att + att.T


def scores_by_product(inputs: Tensor) -> Tensor:
    return inputs @ torch.transpose(inputs, -1, -2)


def normalise(scores: Tensor) -> Tensor:
    total = scores.sum(-1)
    return scores / total[..., None]


def softmax_naive(scores: Tensor) -> Tensor:
    e = scores.exp()
    return e / e.sum(-1)[..., None]


def softmax_stable(scores: Tensor) -> Tensor:
    e = (scores - scores.amax(-1)[..., None]).exp()
    return e / e.sum(-1)[..., None]


def context_vectors(inputs: Tensor) -> Tensor:
    return softmax_stable(scores_by_product(inputs)) @ inputs
