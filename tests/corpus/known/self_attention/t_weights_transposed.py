# mistake: weights_transposed
import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    """Return the dot product of each token with each token, one at a time."""
    n_tokens = inputs.shape[0]
    table = torch.empty(n_tokens, n_tokens, dtype=inputs.dtype, device=inputs.device)
    for i in range(n_tokens):
        for j in range(n_tokens):
            table[i, j] = torch.dot(inputs[i], inputs[j])
    return table


def scores_by_product(inputs: Tensor) -> Tensor:
    """Return the dot product of each token with each token, all in one product."""
    return inputs @ inputs.transpose(-2, -1)


def normalise(scores: Tensor) -> Tensor:
    """Divide each row of scores by its sum."""
    return scores / scores.sum(dim=-1, keepdim=True)


def softmax_naive(scores: Tensor) -> Tensor:
    """Return the softmax of each row of scores, as in the formula."""
    return normalise(torch.exp(scores))


def softmax_stable(scores: Tensor) -> Tensor:
    """Return the softmax of each row of scores, for scores of any size."""
    largest = scores.amax(dim=-1, keepdim=True)
    return softmax_naive(scores - largest)


def context_vectors(inputs: Tensor) -> Tensor:
    """Return the context vector of each token."""
    weights = softmax_stable(scores_by_product(inputs))
    return weights.transpose(-2, -1) @ inputs
