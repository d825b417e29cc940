# right: einsum, a list of rows that is stacked, reciprocals
import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    """Return the dot product of each token with each token, one at a time."""
    rows = []
    for query in inputs:
        row = []
        for key in inputs:
            row.append((query * key).sum())
        rows.append(torch.stack(row))
    return torch.stack(rows)


def scores_by_product(inputs: Tensor) -> Tensor:
    """Return the dot product of each token with each token, all in one product."""
    return torch.einsum("...id,...jd->...ij", inputs, inputs)


def normalise(scores: Tensor) -> Tensor:
    """Divide each row of scores by its sum."""
    total = torch.einsum("...ij->...i", scores)
    return scores.div(total[..., None])


def softmax_naive(scores: Tensor) -> Tensor:
    """Return the softmax of each row, as in the formula."""
    raised = scores.exp()
    return raised.div(raised.sum(-1).unsqueeze(-1))


def softmax_stable(scores: Tensor) -> Tensor:
    """Return the softmax of each row, for scores of any size."""
    top, _ = scores.detach().max(dim=-1)
    return softmax_naive(scores - top[..., None])


def context_vectors(inputs: Tensor) -> Tensor:
    """Return the context vector of each token."""
    return torch.einsum("...ij,...jd->...id", softmax_stable(scores_by_product(inputs)), inputs)
