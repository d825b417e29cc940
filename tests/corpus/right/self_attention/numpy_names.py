# note: numpy-like aliases, a mirrored loop table built as a list, the stable softmax as reciprocals of a sum
import torch
from torch import Tensor

exp, swapaxes, matmul, maximum = torch.exp, torch.swapaxes, torch.matmul, torch.amax


def scores_by_loops(inputs: Tensor) -> Tensor:
    n = inputs.shape[0]
    cells: dict[tuple[int, int], Tensor] = {}
    for i in range(n):
        for j in range(i + 1):
            cells[i, j] = cells[j, i] = inputs[i].mul(inputs[j]).sum()
    return torch.stack([cells[divmod(c, n)] for c in range(n * n)]).reshape(n, n)


def scores_by_product(inputs: Tensor) -> Tensor:
    return matmul(inputs, swapaxes(inputs, -1, -2))


def normalise(scores: Tensor) -> Tensor:
    return scores * scores.sum(axis=-1, keepdims=True).reciprocal() if scores.dtype == torch.float64 else (
        scores.double() / scores.double().sum(axis=-1, keepdims=True)
    ).to(scores.dtype)


def softmax_naive(scores: Tensor) -> Tensor:
    return normalise(exp(scores.double())).to(scores.dtype)


def softmax_stable(scores: Tensor) -> Tensor:
    s = scores.double()
    return softmax_naive(s - maximum(s, -1, keepdim=True)).to(scores.dtype)


def context_vectors(inputs: Tensor) -> Tensor:
    x = inputs.double()
    return matmul(softmax_stable(scores_by_product(x)), x).to(inputs.dtype)
