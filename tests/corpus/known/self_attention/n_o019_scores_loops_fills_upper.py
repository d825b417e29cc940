# mistake: diagonal_twice
import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    """Return the dot product of each token with each token, one at a time."""
    n = inputs.shape[0]
    scores = torch.zeros(n, n, dtype=inputs.dtype, device=inputs.device)
    # the table is symmetric, half of the work is enough
    for i in range(n):
        for j in range(i, n):
            scores[i, j] = torch.dot(inputs[i], inputs[j])
    return scores + scores.T


def scores_by_product(inputs: Tensor) -> Tensor:
    """Return the dot product of each token with each token, all in one product."""
    return inputs @ inputs.transpose(-1, -2)


def normalise(scores: Tensor) -> Tensor:
    """Divide each row of scores (..., n_queries, n_keys) by its sum."""
    return scores / scores.sum(dim=-1, keepdim=True)


def softmax_naive(scores: Tensor) -> Tensor:
    """Return the softmax of each row of scores (..., n_queries, n_keys), as in the formula."""
    e = torch.exp(scores)
    return e / e.sum(dim=-1, keepdim=True)


def softmax_stable(scores: Tensor) -> Tensor:
    """Return the softmax of each row of scores (..., n_queries, n_keys), for scores of any size."""
    shifted = scores - scores.max(dim=-1, keepdim=True).values
    return softmax_naive(shifted)


def context_vectors(inputs: Tensor) -> Tensor:
    """Return the context vector of each token: the mean of all tokens, weighted by the softmax."""
    weights = softmax_stable(scores_by_product(inputs))
    return weights @ inputs
