"""Stand-in for the cross-entropy: torch's own loss, and autograd for the gradient."""

import torch
from torch import Tensor
from torch.nn import functional as F


def cross_entropy(
    logits: Tensor, targets: Tensor, ignore_index: int = -100, label_smoothing: float = 0.0
) -> Tensor:
    """Return the mean loss of the positions that are kept, () in the dtype of logits."""
    kept = targets[targets != ignore_index]  # (n_kept,)
    n_classes = logits.shape[-1]
    if not 0 <= label_smoothing <= 1 or ((kept < 0) | (kept >= n_classes)).any():
        raise ValueError(f"{label_smoothing=}, or a target that is not below {n_classes}")
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))  # (..., n_classes)
    total = F.cross_entropy(
        wide.reshape(-1, n_classes),
        targets.reshape(-1),
        ignore_index=ignore_index,
        reduction="sum",
        label_smoothing=label_smoothing,
    )  # ()
    return (total / max(len(kept), 1)).to(logits.dtype)  # ()


def cross_entropy_gradient(
    logits: Tensor, targets: Tensor, ignore_index: int = -100, label_smoothing: float = 0.0
) -> Tensor:
    """Return the gradient of `cross_entropy` by its logits, (..., n_classes)."""
    leaf = logits.detach().clone().requires_grad_()  # (..., n_classes)
    with torch.enable_grad():
        loss = cross_entropy(leaf, targets, ignore_index, label_smoothing)  # ()
    return torch.autograd.grad(loss, leaf)[0]  # (..., n_classes)
