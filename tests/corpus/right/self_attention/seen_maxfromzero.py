# right: the twin of one with a mistake, maxfromzero
# seen: FluxML/NNlib.jl pull 43. Mistake: the larger of 0 and the maximum is subtracted, so a row of very negative scores vanishes and becomes nan. (Fixed in this twin.)
import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    n_tokens = len(inputs)
    scores = inputs.new_zeros(n_tokens, n_tokens)
    for i in range(n_tokens):
        for j in range(i + 1):
            product = inputs[i] @ inputs[j]
            scores[i, j] = product
            scores[j, i] = product
    return scores


def scores_by_product(inputs: Tensor) -> Tensor:
    return torch.matmul(inputs, inputs.mT)


def normalise(scores: Tensor) -> Tensor:
    return torch.div(scores, torch.sum(scores, dim=-1, keepdim=True))


def softmax_naive(scores: Tensor) -> Tensor:
    return normalise(scores.exp())


def softmax_stable(scores: Tensor) -> Tensor:
    largest, _ = scores.max(dim=-1, keepdim=True)
    return normalise((scores - largest).exp())


def context_vectors(inputs: Tensor) -> Tensor:
    scores = scores_by_product(inputs)
    weights = softmax_stable(scores)
    return torch.matmul(weights, inputs)
