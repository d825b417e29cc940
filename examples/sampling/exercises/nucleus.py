r"""# Nucleus

Top-k keeps the same number of tokens whether a model is sure or not. Nucleus
sampling, also called top-p, keeps as many as it takes: the smallest set of the
most likely tokens whose probabilities add up to at least p. All other logits
become -inf.

    probs     = softmax(logits)
    before[i] = sum of probs over the tokens that come before token i
    output    = logits where before < p, else -inf

A token comes before another if its probability is higher, or if both are equal
and its index is lower. So the token with which the sum reaches p is the last
one that is kept.

Write

    nucleus(logits, p)

    logits   (..., n_vocab)   any floating dtype
    p        a float          above 0, and at most 1
    returns  (..., n_vocab)   dtype of logits

Requirements
  - There may be no leading axis, one, or several. Each row is filtered on its
    own, and kept logits stay where they are, with their value.
  - At least one token of each row is kept, however small p is.
  - With p = 1, all tokens are kept, also those whose probability is too small
    to change the sum.
  - A p of 0 or below, or above 1, is refused: the function raises ValueError.
  - Logits of any size, such as 1e4 or -1e7, are allowed. A number that is
    added to all logits of a row does not change which ones are kept.
  - Gradients reach the kept logits. The argument is not modified; it may be a
    view, such as a transposed tensor.
  - No Python loop runs over rows or tokens.

Example

    logits = tensor([[0., 2., 1., -1.]])
    probs  = 0.0871, 0.6439, 0.2369, 0.0321
    before = 0.8808, 0.0000, 0.6439, 0.9679
    nucleus(logits, 0.8) = tensor([[-inf, 2., 1., -inf]])
    nucleus(logits, 0.5) = tensor([[-inf, 2., -inf, -inf]])
"""

import torch
from torch import Tensor


def nucleus(logits: Tensor, p: float) -> Tensor:
    """Return the logits with all but the smallest likely set of each row set to -inf.

    logits and the output are (..., n_vocab). The most likely tokens are kept, of equal ones those
    with the lower index, until their probabilities add up to p. Raises ValueError for a p that is
    not above 0 and at most 1.
    """
    raise NotImplementedError("fill in nucleus")
