# mistake: softmax_naive divides by the sum plus a millionth, so rows of small exponentials do not sum to 1
import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    """Return the dot product of each token with each token, one at a time.

    inputs is (n_tokens, d), the scores are (n_tokens, n_tokens).
    """
    n_tokens = inputs.shape[0]
    scores = inputs.new_empty(n_tokens, n_tokens)  # (n_tokens, n_tokens)
    for i in range(n_tokens):
        for j in range(n_tokens):
            scores[i, j] = inputs[i] @ inputs[j]  # ()
    return scores  # (n_tokens, n_tokens)


def scores_by_product(inputs: Tensor) -> Tensor:
    """Return the dot product of each token with each token, all in one product.

    inputs is (..., n_tokens, d), the scores are (..., n_tokens, n_tokens).
    """
    return inputs @ inputs.transpose(-2, -1)  # (..., n_tokens, n_tokens)


def normalise(scores: Tensor) -> Tensor:
    """Divide each row of scores (..., n_queries, n_keys) by its sum."""
    sums = scores.sum(dim=-1, keepdim=True)  # (..., n_queries, 1), one for each query
    return scores / sums  # (..., n_queries, n_keys)


def softmax_naive(scores: Tensor) -> Tensor:
    """Return the softmax of each row of scores (..., n_queries, n_keys), as in the formula."""
    exponentials = torch.exp(scores)  # (..., n_queries, n_keys), inf for scores of 1000
    return exponentials / (exponentials.sum(-1, keepdim=True) + 1e-6)  # (..., n_queries, n_keys)


def softmax_stable(scores: Tensor) -> Tensor:
    """Return the softmax of each row of scores (..., n_queries, n_keys), for scores of any size."""
    # The largest exponent is 0, so no exponential overflows, and at least one in a row is 1.
    shifted = scores - scores.amax(dim=-1, keepdim=True)  # (..., n_queries, n_keys)
    return softmax_naive(shifted)  # (..., n_queries, n_keys)


def context_vectors(inputs: Tensor) -> Tensor:
    """Return the context vector of each token: the mean of all tokens, weighted by the softmax.

    Both are (..., n_tokens, d).
    """
    scores = scores_by_product(inputs)  # (..., n_tokens, n_tokens)
    weights = softmax_stable(scores)  # (..., n_tokens, n_tokens)
    return weights @ inputs  # (..., n_tokens, d)
