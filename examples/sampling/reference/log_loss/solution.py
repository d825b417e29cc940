"""Reference solution: cross-entropy from logits, over the positions that count."""

import torch
from torch import Tensor


def log_loss(logits: Tensor, targets: Tensor, ignore_index: int = -100) -> Tensor:
    """Return the mean loss of the positions whose target is not `ignore_index`, 0 if there is none.

    logits is (..., n_classes) and targets (...); the loss is () and has the dtype of logits.
    Raises ValueError for targets of another shape, and for counted targets that are no class.
    """
    # --- solution
    n_classes = logits.shape[-1]
    if targets.shape != logits.shape[:-1]:
        raise ValueError(f"targets have shape {tuple(targets.shape)}")

    counted = targets != ignore_index  # (...)
    kept, classes = logits[counted], targets[counted]  # (n_counted, n_classes), (n_counted,)
    if ((classes < 0) | (classes >= n_classes)).any():
        raise ValueError(f"a target is not one of the {n_classes} classes")

    log_norm = torch.logsumexp(kept, dim=-1)  # (n_counted,)
    picked = kept.gather(-1, classes.unsqueeze(-1)).squeeze(-1)  # (n_counted,)
    losses = log_norm - picked  # (n_counted,)
    return losses.sum() / max(len(losses), 1)  # ()
    # --- end
