"""Reference solution: cross-entropy from logits, with label smoothing, and its gradient."""

import torch
from torch import Tensor
from torch.nn import functional as F


def kept_positions(
    logits: Tensor, targets: Tensor, ignore_index: int, label_smoothing: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the kept logits in at least float32, their classes, and which positions are kept.

    They are (n_kept, n_classes), (n_kept,) and (...). Raises ValueError as both functions do.
    """
    # --- solution
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing is {label_smoothing}, but has to be from 0 to 1")
    kept = targets != ignore_index  # (...)
    classes = targets[kept]  # (n_kept,)
    if ((classes < 0) | (classes >= logits.shape[-1])).any():
        raise ValueError(f"a target is not one of the {logits.shape[-1]} classes")
    rows = logits[kept].to(torch.promote_types(logits.dtype, torch.float32))  # (n_kept, n_classes)
    return rows, classes, kept
    # --- end


def cross_entropy(
    logits: Tensor, targets: Tensor, ignore_index: int = -100, label_smoothing: float = 0.0
) -> Tensor:
    """Return the mean loss of the positions whose target is not `ignore_index`, 0 if there is none.

    logits is (..., n_classes) and targets (...); the loss is () and has the dtype of logits.
    Raises ValueError for a kept target that is no class, and for a label_smoothing not in [0, 1].
    """
    # --- solution
    rows, classes, _ = kept_positions(logits, targets, ignore_index, label_smoothing)
    shifted = rows - rows.amax(dim=-1, keepdim=True)  # (n_kept, n_classes), 0 at most
    log_probs = shifted - shifted.exp().sum(dim=-1, keepdim=True).log()  # (n_kept, n_classes)
    losses = -log_probs.gather(-1, classes.unsqueeze(-1)).squeeze(-1)  # (n_kept,)
    if label_smoothing > 0:  # 0 times the logarithm of a probability of 0 would be nan
        smooth = -log_probs.mean(dim=-1)  # (n_kept,)
        losses = (1 - label_smoothing) * losses + label_smoothing * smooth  # (n_kept,)
    return (losses.sum() / max(len(losses), 1)).to(logits.dtype)  # ()
    # --- end


def cross_entropy_gradient(
    logits: Tensor, targets: Tensor, ignore_index: int = -100, label_smoothing: float = 0.0
) -> Tensor:
    """Return the gradient of `cross_entropy` by its logits, (..., n_classes), in their dtype."""
    # --- solution
    rows, classes, kept = kept_positions(logits, targets, ignore_index, label_smoothing)
    n_classes = rows.shape[-1]
    probs = torch.softmax(rows, dim=-1)  # (n_kept, n_classes)
    one_hot = F.one_hot(classes, n_classes).to(rows.dtype)  # (n_kept, n_classes)
    smoothed = (1 - label_smoothing) * one_hot + label_smoothing / n_classes  # (n_kept, n_classes)
    gradient = torch.zeros_like(logits)  # (..., n_classes)
    gradient[kept] = ((probs - smoothed) / max(len(rows), 1)).to(logits.dtype)
    return gradient
    # --- end
