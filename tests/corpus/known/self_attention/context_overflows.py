# mistake: naive_called_stable
# context_vectors uses the naive softmax, so it gives nan for large inputs
import torch
from torch import Tensor

T = Tensor


def scores_by_loops(inputs: T) -> T:
    count, _ = inputs.shape
    result = torch.zeros(count, count, dtype=inputs.dtype)
    for a in range(count):
        for b in range(a, count):
            s = inputs[a] @ inputs[b]
            result[a, b] = s
            result[b, a] = s
    return result


def scores_by_product(inputs: T) -> T:
    return inputs @ inputs.swapaxes(-1, -2)


def normalise(scores: T) -> T:
    return scores.div(scores.sum(dim=-1, keepdim=True))


def softmax_naive(scores: T) -> T:
    return normalise(scores.exp())


def softmax_stable(scores: T) -> T:
    return softmax_naive(scores - scores.max(dim=-1, keepdim=True)[0])


def context_vectors(inputs: T) -> T:
    return softmax_naive(scores_by_product(inputs)) @ inputs
