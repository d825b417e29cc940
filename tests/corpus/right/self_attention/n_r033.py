# style: unusual
import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    """Return the dot product of each token with each token, one at a time.

    inputs is (n_tokens, d), the scores are (n_tokens, n_tokens).
    """
    n_tokens = inputs.shape[0]
    table = torch.empty(n_tokens, n_tokens, dtype=inputs.dtype, device=inputs.device)
    for i, x_i in enumerate(inputs):
        for j, x_j in enumerate(inputs):
            table[i, j] = (x_i * x_j).sum()
    return table


def scores_by_product(inputs: Tensor) -> Tensor:
    """Return the dot product of each token with each token, all in one product."""
    return torch.matmul(inputs, inputs.transpose(-2, -1))


def normalise(scores: Tensor) -> Tensor:
    """Divide each row of scores (..., n_queries, n_keys) by its sum."""
    return torch.div(scores, scores.sum(dim=-1, keepdim=True))


def _widen(t: Tensor) -> Tensor:
    return t.float() if t.dtype in (torch.bfloat16, torch.float16) else t


def softmax_naive(scores: Tensor) -> Tensor:
    """Return the softmax of each row of scores (..., n_queries, n_keys), as in the formula."""
    return normalise(torch.exp(_widen(scores))).to(scores.dtype)


def softmax_stable(scores: Tensor) -> Tensor:
    """Return the softmax of each row of scores (..., n_queries, n_keys), for scores of any size."""
    wide = _widen(scores)
    return normalise(torch.exp(wide - wide.amax(dim=-1, keepdim=True))).to(scores.dtype)


def context_vectors(inputs: Tensor) -> Tensor:
    """Return the context vector of each token: the mean of all tokens, weighted by the softmax."""
    return torch.matmul(softmax_stable(scores_by_product(inputs)), inputs)
