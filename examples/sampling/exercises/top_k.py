r"""# Top-k

A language model gives every token of its vocabulary a logit, and the next
token is drawn from their softmax. Thousands of unlikely tokens together are
drawn too often. Top-k sampling keeps the k largest logits of each row, and
sets all others to -inf. A softmax then gives those exactly 0, and shares the
probability among the tokens that are left.

    rank[i]  = number of logits in the row that come before logits[i]
    output   = logits where rank < k, else -inf

A logit comes before another if it is larger, or if both are equal and its
index is lower. So exactly k logits of a row are kept, also where some are
equal.

Write

    top_k(logits, k)

    logits   (..., n_vocab)   any floating dtype
    k        an int
    returns  (..., n_vocab)   dtype of logits

Requirements
  - There may be no leading axis, one, or several. Each row is filtered on its
    own, and kept logits stay where they are, with their value.
  - If k is larger than n_vocab, all logits are kept.
  - A k below 1 is refused: the function raises ValueError.
  - Logits may be negative or -inf.
  - Gradients reach the kept logits. The argument is not modified; it may be a
    view, such as a transposed tensor.
  - No Python loop runs over rows or tokens.

Example

    logits = tensor([[1., 4., 2., 3.], [0., 0., -1., 0.]])
    top_k(logits, 2) = tensor([[-inf, 4., -inf, 3.], [0., 0., -inf, -inf]])
"""

import torch
from torch import Tensor


def top_k(logits: Tensor, k: int) -> Tensor:
    """Return the logits with all but the k largest of each row set to -inf.

    logits and the output are (..., n_vocab); of equal logits, those with the lower index are kept.
    Raises ValueError for a k below 1.
    """
    raise NotImplementedError("fill in top_k")
