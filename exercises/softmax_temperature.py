r"""# Softmax and temperature

Attention divides its scores by the root of d_key before the softmax. This
exercise measures why: dot products of long vectors are large, a softmax of
large scores gives one key nearly all the weight, and then it learns almost
nothing, because its gradient vanishes.

    weights  = softmax(scores / temperature)   over the keys
    entropy  = - sum over keys of weight * log(weight)
    variance = mean over the n products of (product - mean of products)^2
    scaled   = scores / sqrt(d_key)

A low temperature makes the weights sharp, a high one makes them even. The
entropy measures it: 0 if one key has all the weight, log(n_keys) if all
weights are equal.

Write

    tempered_softmax(scores, temperature)

    scores       (..., n_keys)       any floating dtype
    temperature  a number above 0
    returns      (..., n_keys)       weights, dtype of scores

    entropy(weights)

    weights      (..., n_keys)       rows that sum to 1, any floating dtype
    returns      (...)               in nats (natural logarithm), dtype of
                                     weights

    variance_of_products(queries, keys)

    queries      (..., n, d_key)     any floating dtype
    keys         (..., n, d_key)
    returns      (...)               the variance of the n dot products of
                                     queries[..., i, :] and keys[..., i, :],
                                     dtype of queries and keys

    scale(scores, d_key)

    scores       any shape           dot products of vectors of size d_key
    returns      the same shape      scores / sqrt(d_key), dtype of scores

Requirements
  - A temperature near 0, such as 1e-3, gives the best key all the weight. A
    huge one gives all keys the same weight. A temperature of 0 or below is
    refused: the function raises ValueError.
  - Scores of any size, such as 1e4 or -1e4, give finite weights, as long as
    scores / temperature is finite in their dtype.
  - A weight of 0 adds 0 to the entropy, in half precision as well. The
    gradient of the entropy there may be any finite number.
  - Small weights count in full: a weight of 1e-7 in float64 adds 1.6e-6.
  - The variance divides by n, not by n - 1. For a single product it is 0.
    Products far from 0, such as those around 1e8 in float64, have the right
    variance: mean(product^2) - mean(product)^2 loses its digits there.
  - Leading axes ... may be none, one or several. Inputs may be views, such as
    transposed tensors, and are not modified.
  - Gradients reach scores, weights, queries and keys.
  - No Python loop runs over any axis.

Example

    scores = tensor([1., 2., 3.])

    temperature     weights                 entropy
        0.1     0.0000  0.0000  1.0000      0.0005
        0.5     0.0159  0.1173  0.8668      0.4411
        1       0.0900  0.2447  0.6652      0.8324
        2       0.1863  0.3072  0.5065      1.0202
       10       0.3006  0.3322  0.3672      1.0953

The entropy falls as the temperature falls; the largest for three keys is
log(3) = 1.0986. For the scores 100, 200, 300 the weights are 0, 0, 1, up to
1e-43: the entropy is 0, and so is the gradient of each weight by each score.

    queries = tensor([[1., 2.], [3., -1.], [0., 2.]])
    keys    = tensor([[2., 1.], [1., 1.], [4., 0.]])

The products are 4, 2, 0. Their mean is 2, and variance_of_products is
(4 + 0 + 4) / 3 = 2.6667. For many random vectors whose numbers have mean 0 and
variance 1, it is near d_key. After `scale` the variance of the scores is near
1, whatever d_key is:

    q, k = torch.randn(10000, 64), torch.randn(10000, 64)
    variance_of_products(q, k)    = tensor(63.4)   about d_key

Write it by hand. These names of torch are not accepted here: entr,
distributions, cross_entropy.

What is new: The temperature of a softmax, the entropy of its weights, and
the reason for the root of d_key.

From: Attention Is All You Need (2017)
"""

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    """Return the softmax over the keys of scores / temperature.

    scores is (..., n_keys), the weights have its shape and dtype. Raises ValueError for a
    temperature that is not positive.
    """
    raise NotImplementedError("fill in softmax_temperature")


def entropy(weights: Tensor) -> Tensor:
    """Return the entropy of each row of weights in nats, where 0 log 0 counts as 0.

    weights is (..., n_keys), the entropy is (...) in the same dtype.
    """
    raise NotImplementedError("fill in softmax_temperature")


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    """Return the variance of the dot products of n queries, each with the key of the same row.

    queries and keys are (..., n, d_key), the variance is (...) in the same dtype.
    """
    raise NotImplementedError("fill in softmax_temperature")


def scale(scores: Tensor, d_key: int) -> Tensor:
    """Return scores of vectors of size d_key, brought to a variance that does not depend on d_key.

    scores may have any shape, the result has its shape and dtype.
    """
    raise NotImplementedError("fill in softmax_temperature")
