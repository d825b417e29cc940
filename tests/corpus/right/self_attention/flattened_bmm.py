# right: leading axes flattened by explicit reshapes, bmm and baddbmm on three axes
import torch
from torch import Tensor


def _three_axes(x: Tensor) -> Tensor:
    lead = 1
    for size in x.shape[:-2]:
        lead *= size
    return x.reshape(lead, x.shape[-2], x.shape[-1])


def scores_by_loops(inputs: Tensor) -> Tensor:
    n, d = inputs.shape
    result = []
    for i in range(n):
        for j in range(n):
            result.append(inputs[i].reshape(1, d).mm(inputs[j].reshape(d, 1)).reshape(1))
    return torch.cat(result).reshape(n, n)


def scores_by_product(inputs: Tensor) -> Tensor:
    x = _three_axes(inputs)
    flat = torch.bmm(x, x.permute(0, 2, 1))
    return flat.reshape(*inputs.shape[:-1], inputs.shape[-2])


def normalise(scores: Tensor) -> Tensor:
    s = _three_axes(scores)
    ones = s.new_ones(s.shape[0], s.shape[2], 1)
    return (s / torch.bmm(s, ones)).reshape(scores.shape)


def softmax_naive(scores: Tensor) -> Tensor:
    s = _three_axes(scores).exp()
    return (s / s.sum(2, keepdim=True)).reshape(scores.shape)


def softmax_stable(scores: Tensor) -> Tensor:
    s = _three_axes(scores)
    s = s - s.max(2, keepdim=True)[0]
    return softmax_naive(s).reshape(scores.shape)


def context_vectors(inputs: Tensor) -> Tensor:
    x = _three_axes(inputs)
    w = _three_axes(softmax_stable(scores_by_product(inputs)))
    zero = x.new_zeros(())
    return torch.baddbmm(zero, w, x, beta=0).reshape(inputs.shape)
