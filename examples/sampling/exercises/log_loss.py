r"""# Log loss

A model gives each position a score for every class: a logit. The loss of a
position is the negative logarithm of the probability that the softmax of its
logits gives to the right class. The loss of a batch is the mean over all
positions, except for those that are to be ignored, such as padding.

    loss[i] = log(sum over j of exp(logits[i, j])) - logits[i, targets[i]]
    log_loss = sum of loss[i] over the counted positions i
               / number of counted positions

Position i is counted if targets[i] is not ignore_index. The logarithm is the
natural one.

Write

    log_loss(logits, targets, ignore_index=-100)

    logits        (..., n_classes)   any floating dtype
    targets       (...)              int64, the right class of each position,
                                     or ignore_index
    ignore_index  an int             any, also that of a class
    returns       ()                 dtype of logits

Requirements
  - There may be no leading axis, one, or several, such as (batch, n_tokens).
    Every counted position has the same weight, wherever it is.
  - The logits of ignored positions have no effect, and their gradient is 0.
  - If no position is counted, the loss is 0 (not nan).
  - Logits of any size, such as 1e4 or -1e7, give a finite loss. A number that
    is added to all logits of a position changes nothing.
  - A counted target below 0 or not below n_classes, and targets of any other
    shape than the leading axes of logits, are refused: the function raises
    ValueError.
  - Gradients reach the logits. Neither argument is modified; both may be
    views, such as transposed tensors.
  - No Python loop runs over positions or classes.
  - torch's own cross_entropy and nll_loss are not allowed; logsumexp,
    log_softmax and gather are.

Example

    logits  = tensor([[1., 2., 3.], [0., 0., 0.], [5., 1., 1.]])
    targets = tensor([2, 0, -100])
    losses  = 0.4076, 1.0986, ignored
    log_loss(logits, targets) = 0.7531

Write it by hand. These names of torch are not accepted here: cross_entropy,
CrossEntropyLoss, nll_loss, NLLLoss, distributions.
"""

import torch
from torch import Tensor


def log_loss(logits: Tensor, targets: Tensor, ignore_index: int = -100) -> Tensor:
    """Return the mean loss of the positions whose target is not `ignore_index`, 0 if there is none.

    logits is (..., n_classes) and targets (...); the loss is () and has the dtype of logits.
    Raises ValueError for targets of another shape, and for counted targets that are no class.
    """
    raise NotImplementedError("fill in log_loss")
