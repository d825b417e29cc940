# mistake: largest_score_divided
import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    n_tokens = len(inputs)
    out = inputs.new_empty(n_tokens, n_tokens)
    for i in range(n_tokens):
        for j in range(n_tokens):
            out[i, j] = inputs[i] @ inputs[j]
    return out


def scores_by_product(inputs: Tensor) -> Tensor:
    return torch.matmul(inputs, inputs.transpose(-2, -1))


def normalise(scores: Tensor) -> Tensor:
    total = torch.sum(scores, dim=-1, keepdim=True)
    return torch.div(scores, total)


def softmax_naive(scores: Tensor) -> Tensor:
    return normalise(torch.exp(scores))


def softmax_stable(scores: Tensor) -> Tensor:
    # keep the numbers small before exp
    biggest = scores.abs().amax(dim=-1, keepdim=True).clamp(min=1e-12)
    return normalise(torch.exp(scores / biggest))


def context_vectors(inputs: Tensor) -> Tensor:
    scores = scores_by_product(inputs)
    top = scores.max(dim=-1, keepdim=True).values
    return softmax_naive(scores - top) @ inputs
