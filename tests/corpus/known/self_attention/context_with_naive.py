# mistake: naive_called_stable
"""Self-attention without trainable weights."""
import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    n = inputs.shape[0]
    rows = []
    for i in range(n):
        row = []
        for j in range(n):
            row.append(torch.dot(inputs[i], inputs[j]))
        rows.append(torch.stack(row))
    return torch.stack(rows)


def scores_by_product(inputs: Tensor) -> Tensor:
    return inputs @ inputs.transpose(-2, -1)


def normalise(scores: Tensor) -> Tensor:
    return scores / scores.sum(dim=-1, keepdim=True)


def softmax_naive(scores: Tensor) -> Tensor:
    e = torch.exp(scores)
    return e / e.sum(dim=-1, keepdim=True)


def softmax_stable(scores: Tensor) -> Tensor:
    biggest = scores.max(dim=-1, keepdim=True).values
    e = torch.exp(scores - biggest)
    return e / e.sum(dim=-1, keepdim=True)


def context_vectors(inputs: Tensor) -> Tensor:
    attention = softmax_naive(scores_by_product(inputs))
    return attention @ inputs
