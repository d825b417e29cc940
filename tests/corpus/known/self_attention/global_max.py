# mistake: one_maximum_for_all_rows
import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    n = len(inputs)
    table = torch.empty((n, n), dtype=inputs.dtype, device=inputs.device)
    i = 0
    while i < n:
        j = 0
        while j < n:
            table[i, j] = torch.dot(inputs[i], inputs[j])
            j += 1
        i += 1
    return table


def scores_by_product(inputs: Tensor) -> Tensor:
    return torch.matmul(inputs, torch.swapaxes(inputs, -1, -2))


def _log_total(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The largest score, and the log of the sum of what is left without it."""
    top = scores.max()
    return top, torch.log(torch.exp(scores - top).sum(dim=-1, keepdim=True))


def normalise(scores: Tensor) -> Tensor:
    return scores / torch.sum(scores, dim=-1, keepdim=True)


def softmax_naive(scores: Tensor) -> Tensor:
    exponentials = torch.exp(scores)
    return exponentials / torch.sum(exponentials, dim=-1, keepdim=True)


def softmax_stable(scores: Tensor) -> Tensor:
    top, log_total = _log_total(scores)
    return torch.exp((scores - top) - log_total)


def context_vectors(inputs: Tensor) -> Tensor:
    return torch.matmul(softmax_stable(scores_by_product(inputs)), inputs)
