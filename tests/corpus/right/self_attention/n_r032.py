# style: unusual
import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    """the upper half by dot products, the lower half is its mirror image"""
    n = inputs.size(0)
    rows = [[None] * n for _ in range(n)]
    for i in range(n):
        for j in range(i, n):
            rows[i][j] = rows[j][i] = torch.dot(inputs[i], inputs[j])
    return torch.stack([torch.stack(row) for row in rows])


def scores_by_product(inputs: Tensor) -> Tensor:
    return torch.einsum("...id,...jd->...ij", inputs, inputs)


def normalise(scores: Tensor) -> Tensor:
    total = torch.einsum("...qk->...q", scores)
    return scores / total[..., None]


def softmax_naive(scores: Tensor) -> Tensor:
    return normalise(scores.exp())


def softmax_stable(scores: Tensor) -> Tensor:
    top, _ = torch.max(scores.detach(), dim=-1, keepdim=True)
    return softmax_naive(scores - top)


def context_vectors(inputs: Tensor) -> Tensor:
    weights = softmax_stable(scores_by_product(inputs))
    return torch.einsum("...ij,...jd->...id", weights, inputs)
