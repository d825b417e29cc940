# right: the twin of one with a mistake, globalmax
# seen: blog shusei-e.github.io, Softmax without Overflow. Mistake: one maximum of the whole table is subtracted, so rows far below it vanish and become nan. (Fixed in this twin.)
import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    rows = []
    for query in inputs:
        row = []
        for key in inputs:
            row.append((query * key).sum())
        rows.append(torch.stack(row))
    return torch.stack(rows)


def scores_by_product(inputs: Tensor) -> Tensor:
    return torch.einsum("...id,...jd->...ij", inputs, inputs)


def normalise(scores: Tensor) -> Tensor:
    total = torch.sum(scores, -1)
    return scores / total.unsqueeze(-1)


def softmax_naive(scores: Tensor) -> Tensor:
    e = scores.exp()
    return e / e.sum(-1).unsqueeze(-1)


def softmax_stable(scores: Tensor) -> Tensor:
    m = torch.max(scores, -1, keepdim=True).values
    e = (scores - m.detach()).exp()
    return e / e.sum(-1).unsqueeze(-1)


def context_vectors(inputs: Tensor) -> Tensor:
    weights = softmax_stable(scores_by_product(inputs))
    return torch.einsum("...ij,...jd->...id", weights, inputs)
