# right: mirrored half of the table by loops, einsum, exponentials with a detached maximum
import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    n = len(inputs)
    table: dict[tuple[int, int], Tensor] = {}
    for i in range(n):
        for j in range(i, n):
            table[i, j] = table[j, i] = torch.dot(inputs[i], inputs[j])
    flat = [table[divmod(place, n)] for place in range(n * n)]
    return torch.stack(flat).unflatten(0, (n, n))


def scores_by_product(inputs: Tensor) -> Tensor:
    return torch.einsum("...id,...jd->...ij", inputs, inputs)


def normalise(scores: Tensor) -> Tensor:
    return torch.div(scores, torch.sum(scores, dim=-1, keepdim=True))


def softmax_naive(scores: Tensor) -> Tensor:
    return normalise(scores.exp())


def softmax_stable(scores: Tensor) -> Tensor:
    largest, _ = scores.detach().max(dim=-1, keepdim=True)
    return softmax_naive(scores - largest)


def context_vectors(inputs: Tensor) -> Tensor:
    weights = softmax_stable(scores_by_product(inputs))
    return torch.einsum("...ij,...jd->...id", weights, inputs)
