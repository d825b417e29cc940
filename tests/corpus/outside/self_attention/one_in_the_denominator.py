# mistake: both softmaxes add 1 to the sum of the exponentials, so that a row sums to less than 1
import torch


def scores_by_loops(inputs):
    n = inputs.size(0)
    lines = []
    for a in inputs.unbind(0):
        lines.append(torch.stack([(a * b).sum() for b in inputs.unbind(0)]))
    return torch.stack(lines).reshape(n, n)


def scores_by_product(inputs):
    return inputs.matmul(inputs.mT)


def normalise(scores):
    return scores / scores.sum(-1, True)


def softmax_naive(scores):
    powers = scores.exp()
    return powers / (1 + powers.sum(-1, True))


def softmax_stable(scores):
    return softmax_naive(scores - scores.amax(-1, True))


def context_vectors(inputs):
    return softmax_stable(scores_by_product(inputs)).matmul(inputs)
