# right: the twin of one with a mistake, fixedaxis
# seen: FudanNLP/fastNLP issue 254 (DotAttention). Mistake: the number of the softmax axis is fixed for one leading axis, so with more of them another axis is normalised. (Fixed in this twin.)
import torch
from torch import Tensor


def _row_total(table: Tensor) -> Tensor:
    axis = table.dim() - 1
    return table.sum(axis, keepdim=True)


def scores_by_loops(inputs: Tensor) -> Tensor:
    n, _ = inputs.shape
    cells = []
    for i in range(n):
        for j in range(n):
            cells.append(torch.sum(inputs[i] * inputs[j]))
    return torch.stack(cells).reshape(n, n)


def scores_by_product(inputs: Tensor) -> Tensor:
    return inputs.matmul(inputs.swapaxes(-1, -2))


def normalise(scores: Tensor) -> Tensor:
    return scores / _row_total(scores)


def softmax_naive(scores: Tensor) -> Tensor:
    e = torch.exp(scores)
    return e / _row_total(e)


def softmax_stable(scores: Tensor) -> Tensor:
    e = torch.exp(scores - scores.amax(-1, keepdim=True))
    return e / _row_total(e)


def context_vectors(inputs: Tensor) -> Tensor:
    return softmax_stable(scores_by_product(inputs)).matmul(inputs)
