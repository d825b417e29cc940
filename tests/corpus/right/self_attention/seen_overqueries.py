# right: the twin of one with a mistake, overqueries
# seen: labmlai annotated implementations issue 146 (DDPM UNet). Mistake: the softmax runs along the axis of the queries, so columns sum to 1 in place of rows. (Fixed in this twin.)
import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    n = inputs.shape[0]
    table = torch.empty(n, n, dtype=inputs.dtype, device=inputs.device)
    for i in range(n):
        for j in range(n):
            table[i, j] = torch.dot(inputs[i], inputs[j])
    return table


def scores_by_product(inputs: Tensor) -> Tensor:
    return inputs @ inputs.transpose(-2, -1)


def normalise(scores: Tensor) -> Tensor:
    return scores / scores.sum(dim=-1, keepdim=True)


def softmax_naive(scores: Tensor) -> Tensor:
    return normalise(torch.exp(scores))


def softmax_stable(scores: Tensor) -> Tensor:
    top = scores.amax(dim=-1, keepdim=True)
    e = torch.exp(scores - top)
    return e / e.sum(dim=-1, keepdim=True)


def context_vectors(inputs: Tensor) -> Tensor:
    return softmax_stable(scores_by_product(inputs)) @ inputs
