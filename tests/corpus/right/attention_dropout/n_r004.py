# style: unusual
r"""# Attention dropout

In training, attention weights are dropped at random, so that a model does not
rely on single keys. This exercise writes "inverted" dropout by hand: the
weights that are kept are scaled up, so that the mean of each weight over many
draws stays what it was, and evaluation needs no correction.

    drop(w) = 0             with probability rate
              w / (1 - rate)  otherwise

Write

    drop(weights, rate, training)

    weights   (..., n_keys)    attention weights, any floating dtype; usually
                               (batch, n_queries, n_keys)
    rate      a number from 0 to 1, the probability of being dropped
    training  True in training, False in evaluation
    returns   the same shape and dtype

Requirements
  - Every weight is dropped or kept on its own: the batch items, the queries
    and the keys of a query all have random numbers of their own, and each call
    draws new ones.
  - The numbers come from torch's global generator, as those of nn.Dropout do:
    after torch.manual_seed(n) the same weights are dropped again.
  - A weight that is kept is weight / (1 - rate), up to rounding. The rows are
    not normalised again: they sum to 1 only on average.
  - If training is False, the result equals the weights, whatever the rate is;
    it may be the same tensor.
  - Rate 0 drops nothing. Rate 1 drops everything: the result is zeros, not
    nan, and its gradient is finite, or there is none.
  - A rate below 0 or above 1 is refused with ValueError, in training and in
    evaluation.
  - weights may be a view, such as a transposed tensor, and is not modified.
    Gradients reach the weights that are kept.
  - No Python loop runs over any axis.

Example

    weights = tensor([[0.1, 0.2, 0.3, 0.4]])

At rate 0.5 each weight is dropped or doubled. If the second and the third are
dropped,

    drop(weights, 0.5, True)  = tensor([[0.2, 0.0, 0.0, 0.8]])

Its sum happens to be 1; if only the fourth is dropped, it is 1.2. At rate 0.2
a kept weight is divided by 0.8:

    drop(weights, 0.2, True)  = tensor([[0.125, 0.25, 0.375, 0.5]])

if all are kept. drop(weights, 0.5, False) equals weights.

Write it by hand. These names of torch are not accepted here: dropout,
Dropout.

What is new: Dropout itself, which the exercises around it take from torch.

From: Dropout: A Simple Way to Prevent Neural Networks from Overfitting
(2014)
"""

import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    """Return weights of which each is dropped with probability `rate`, and the others scaled up."""
    if rate < 0 or rate > 1:
        raise ValueError("rate has to be between 0 and 1")
    if training:
        gone = torch.rand(weights.shape, device=weights.device, dtype=torch.float64) < rate
        scale = 1 if rate == 1 else 1 / (1 - rate)
        return (weights * scale).masked_fill(gone, 0)
    return weights
