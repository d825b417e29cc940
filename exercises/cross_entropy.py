r"""# Cross-entropy

A model gives each position a score for every class: a logit. The loss of a
position is the negative logarithm of the probability that the softmax of its
logits gives to the right class. Label smoothing asks for a little probability
in every class, so that the logits need not grow without end.

    p       = softmax(logits[i])        over the classes, the last axis
    q       = (1 - s) * one_hot(targets[i]) + s / n_classes
    loss[i] = - sum over classes of q * log(p)
            = (1 - s) * -log(p[targets[i]]) + s * mean over classes of -log(p)

    cross_entropy          = sum of loss[i] over the kept positions / n_kept
    cross_entropy_gradient = (p - q) / n_kept   for a kept position, else 0

Position i is kept if targets[i] is not ignore_index. The logarithm is the
natural one, and s is label_smoothing.

Write

    cross_entropy(logits, targets, ignore_index=-100, label_smoothing=0.0)

    logits           (..., n_classes)   any floating dtype
    targets          (...)              int64, the class of each position, or
                                        ignore_index
    ignore_index     an int             any, also that of a class
    label_smoothing  a number from 0 to 1
    returns          ()                 dtype of logits

    cross_entropy_gradient(logits, targets, ignore_index=-100,
                           label_smoothing=0.0)

    returns          (..., n_classes)   the gradient of cross_entropy by its
                                        logits, dtype of logits

The file also has kept_positions, a helper that both may share. It is not asked
for: use it, change it or delete it.

Requirements
  - There may be no leading axis, one, or several, such as (batch, n_tokens).
    Every kept position has the same weight, wherever it is.
  - The logits of ignored positions have no effect, and their gradient is 0,
    with label smoothing as well.
  - If no position is kept, the loss is 0 and the gradient is zeros (torch
    gives nan).
  - Logits of any size, such as 1e4 or -1e7, give a finite loss. Without label
    smoothing, a logit of -inf for another class than the target changes
    nothing but that class's probability, which is 0.
  - Half precision is computed in float32 (or better) and rounded once, at the
    end.
  - A target of a kept position below 0 or not below n_classes, and a
    label_smoothing outside 0 to 1, are refused by both functions: ValueError.
  - Gradients reach the logits of cross_entropy. cross_entropy_gradient is
    computed from the formula, without autograd.
  - Arguments may be views, such as transposed tensors, and are not modified.
    No Python loop runs over positions or classes.
  - torch's cross_entropy, nll_loss, log_softmax and logsumexp are not allowed;
    softmax and one_hot are.

Example

    logits  = tensor([[2., 1., 0.], [0., 0., 0.], [1., 5., 1.]])
    targets = tensor([0, 2, -100])

The losses are 0.4076 and 1.0986, and the third position is ignored, so
cross_entropy(logits, targets) is 0.7531. With label_smoothing=0.3, the losses
are 0.7076 and 1.0986, their mean is 0.9031, and the gradient is

    -0.0674   0.0724  -0.0050
     0.1167   0.1167  -0.2333
     0.       0.       0.

Write it by hand. These names of torch are not accepted here: cross_entropy,
CrossEntropyLoss, nll_loss, NLLLoss, log_softmax, LogSoftmax, logsumexp,
distributions, autograd.grad, autograd.backward, autograd.functional, func,
Tensor.backward.

What is new: The loss that every language model is trained with, label
smoothing, and the gradient of a softmax by hand.

From: Rethinking the Inception Architecture for Computer Vision (2016)
"""

import torch
from torch import Tensor
from torch.nn import functional as F


def kept_positions(
    logits: Tensor, targets: Tensor, ignore_index: int, label_smoothing: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the kept logits in at least float32, their classes, and which positions are kept.

    They are (n_kept, n_classes), (n_kept,) and (...). Raises ValueError as both functions do.
    """
    raise NotImplementedError("fill in cross_entropy")


def cross_entropy(
    logits: Tensor, targets: Tensor, ignore_index: int = -100, label_smoothing: float = 0.0
) -> Tensor:
    """Return the mean loss of the positions whose target is not `ignore_index`, 0 if there is none.

    logits is (..., n_classes) and targets (...); the loss is () and has the dtype of logits.
    Raises ValueError for a kept target that is no class, and for a label_smoothing not in [0, 1].
    """
    raise NotImplementedError("fill in cross_entropy")


def cross_entropy_gradient(
    logits: Tensor, targets: Tensor, ignore_index: int = -100, label_smoothing: float = 0.0
) -> Tensor:
    """Return the gradient of `cross_entropy` by its logits, (..., n_classes), in their dtype."""
    raise NotImplementedError("fill in cross_entropy")
