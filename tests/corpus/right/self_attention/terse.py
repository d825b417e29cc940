"""Self-attention in one line each."""

from torch import stack


def scores_by_loops(inputs):
    return stack([stack([(a * b).sum() for b in inputs.unbind()]) for a in inputs.unbind()])


def scores_by_product(inputs):
    return inputs @ inputs.mT


def normalise(scores):
    return scores / scores.sum(-1, True)


def softmax_naive(scores):
    return (e := scores.exp()) / e.sum(-1, True)


def softmax_stable(scores):
    return (e := (scores - scores.max(-1, True)[0]).exp()) / e.sum(-1, True)


def context_vectors(inputs):
    return softmax_stable(inputs @ inputs.mT) @ inputs
