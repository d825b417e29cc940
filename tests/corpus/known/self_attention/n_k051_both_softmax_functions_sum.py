# mistake: softmax_over_queries
r"""# Self-attention

In a sentence, the meaning of a token depends on the others. Self-attention
gives each token a context vector: a mix of all tokens, in which those that
match it best count most. Here nothing is learned yet: a token's vector is its
query, its key and its value at once.

    scores[i, j]  = inputs[i] . inputs[j]         how well j matches i
    weights[i, j] = exp(scores[i, j]) / sum over k of exp(scores[i, k])
    context[i]    = sum over j of weights[i, j] * inputs[j]

Row i belongs to the query, the token that attends; column j belongs to the
key, the token that it attends to. So each row of weights sums to 1. A token
attends to itself like to any other.

Write

    scores_by_loops(inputs)     (n_tokens, d) -> (n_tokens, n_tokens)
    scores_by_product(inputs)   (..., n_tokens, d) -> (..., n_tokens, n_tokens)

The dot products of all tokens with all tokens. The first function fills its
table one dot product at a time, in two nested Python loops over the tokens. It
is the only place in this course where loops are asked for, so that you see
what a product of matrices does; half of the table may be a mirror image of the
other. The second one gives the same numbers in one product, without a loop.

    normalise(scores)            (..., n_queries, n_keys) -> the same shape
    softmax_naive(scores)        (..., n_queries, n_keys) -> the same shape
    softmax_stable(scores)       (..., n_queries, n_keys) -> the same shape

Three ways to turn scores into weights that sum to 1 in each row, over the last
axis. `normalise` divides each score by the sum of its row, whatever the signs
are; no row of its scores sums to 0. `softmax_naive` does the same with the
exponentials of the scores, as in the formula. It may give nan for scores of
1000, whose exponentials are infinite. `softmax_stable` gives the same weights,
and stays finite for all finite scores: subtract the largest score of each row
first.

    context_vectors(inputs)      (..., n_tokens, d) -> (..., n_tokens, d)

The softmax of the scores of `inputs`, times `inputs`.

Requirements
  - You write the softmax: torch's own, in any form, and torch.logsumexp are
    not allowed.
  - The leading axes ... may be none, one or several. There may be one token,
    one query, one key or one feature. n_queries and n_keys may differ.
  - softmax_stable gives the right weights for finite scores of any size, such
    as 1e4 and -1e4, in each row for itself; context_vectors does so, too.
  - The result has the dtype of the argument: float64, float32 or bfloat16. It
    is computed in this dtype or in a more exact one.
  - Gradients reach the argument of all six functions.
  - The argument may be a view, such as a transposed tensor. It is not
    modified.
  - No Python loop runs over leading axes, tokens, queries or keys, except in
    scores_by_loops.

Example

    inputs = tensor([[0.43, 0.15, 0.89],
                     [0.55, 0.87, 0.66],
                     [0.57, 0.85, 0.64],
                     [0.22, 0.58, 0.33],
                     [0.77, 0.25, 0.10],
                     [0.05, 0.80, 0.55]])

For the second token, whose scores sum to 6.5617,

    scores      0.9544  1.4950  1.4754  0.8434  0.7070  1.0865
    normalise   0.1455  0.2278  0.2249  0.1285  0.1077  0.1656
    softmax     0.1385  0.2379  0.2333  0.1240  0.1082  0.1581
    context     0.4419  0.6515  0.5683

Dividing by the sum works here because all scores are positive. The softmax
works for all scores: the weights of the scores 2 and -2 are 0.9820 and 0.0180,
whose sum is 1, while 2 and -2 sum to 0.

Write it by hand. These names of torch are not accepted here:
scaled_dot_product, MultiheadAttention, multi_head_attention, transformer,
Transformer, nn.attention.

What is new: Queries, keys and values are the tokens themselves; the softmax
is written by hand.

From: Long Short-Term Memory-Networks for Machine Reading (2016)
"""

import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    """Return the dot product of each token with each token, one at a time."""
    n = inputs.shape[0]
    scores = torch.zeros(n, n, dtype=inputs.dtype, device=inputs.device)
    for i in range(n):
        for j in range(n):
            scores[i, j] = inputs[i] @ inputs[j]
    return scores


def scores_by_product(inputs: Tensor) -> Tensor:
    """Return the dot product of each token with each token, all in one product."""
    return inputs @ inputs.transpose(-1, -2)


def normalise(scores: Tensor) -> Tensor:
    """Divide each row of scores (..., n_queries, n_keys) by its sum."""
    return scores / scores.sum(dim=-1, keepdim=True)


def softmax_naive(scores: Tensor) -> Tensor:
    """Return the softmax of each row of scores (..., n_queries, n_keys), as in the formula."""
    e = torch.exp(scores)
    return e / e.sum(dim=-2, keepdim=True)


def softmax_stable(scores: Tensor) -> Tensor:
    """Return the softmax of each row of scores (..., n_queries, n_keys), for scores of any size."""
    shifted = scores - scores.max(dim=-2, keepdim=True).values
    return softmax_naive(shifted)


def context_vectors(inputs: Tensor) -> Tensor:
    """Return the context vector of each token: the mean of all tokens, weighted by the softmax."""
    weights = softmax_stable(scores_by_product(inputs))
    return weights @ inputs
