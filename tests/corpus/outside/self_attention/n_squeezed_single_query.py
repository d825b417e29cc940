# mistake: the stable softmax squeezes the largest scores, so a single query loses an axis in a batch
import torch


def scores_by_loops(inputs):
    n = inputs.shape[0]
    flat = []
    for i in range(n):
        for j in range(n):
            flat.append(inputs[i] @ inputs[j])
    return torch.stack(flat).view(n, n)


def scores_by_product(inputs):
    return inputs @ inputs.mT


def normalise(scores):
    return scores / scores.sum(-1, keepdim=True)


def softmax_naive(scores):
    return normalise(scores.exp())


def softmax_stable(scores):
    largest = scores.amax(-1, keepdim=True).squeeze()
    return normalise((scores - largest.unsqueeze(-1)).exp())


def context_vectors(inputs):
    return softmax_stable(scores_by_product(inputs)) @ inputs
