# broken: "softmax_stable gives the right weights for finite scores of any size": scores are cut to -1e6..1e6, so 2e6 and 3e6 get equal weights.
import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    rows = []
    for a in inputs:
        row = []
        for b in inputs:
            row.append(torch.dot(a, b))
        rows.append(torch.stack(row))
    return torch.stack(rows)


def scores_by_product(inputs: Tensor) -> Tensor:
    return inputs @ inputs.transpose(-2, -1)


def normalise(scores: Tensor) -> Tensor:
    return scores / scores.sum(dim=-1, keepdim=True)


def softmax_naive(scores: Tensor) -> Tensor:
    powers = torch.exp(scores)
    return powers / powers.sum(dim=-1, keepdim=True)


def softmax_stable(scores: Tensor) -> Tensor:
    scores = scores.clamp(-1e6, 1e6)
    powers = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return powers / powers.sum(dim=-1, keepdim=True)


def context_vectors(inputs: Tensor) -> Tensor:
    weights = softmax_stable(scores_by_product(inputs))
    return weights @ inputs
