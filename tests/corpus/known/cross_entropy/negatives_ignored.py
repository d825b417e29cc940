# mistake: ignore_index_fixed
# Every negative target is ignored, whatever ignore_index is.
import torch
from torch import Tensor
from torch.nn import functional as F


def kept_positions(logits, targets, ignore_index, label_smoothing):
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError("label_smoothing has to be from 0 to 1")
    kept = targets >= 0
    classes = targets[kept]
    if ((classes < 0) | (classes >= logits.shape[-1])).any():
        raise ValueError("a target is no class")
    rows = logits[kept]
    return rows.to(torch.promote_types(rows.dtype, torch.float32)), classes, kept


def cross_entropy(logits: Tensor, targets: Tensor, ignore_index: int = -100, label_smoothing: float = 0.0) -> Tensor:
    rows, classes, _ = kept_positions(logits, targets, ignore_index, label_smoothing)
    rows = rows.reshape(-1, rows.shape[-1])
    classes = classes.reshape(-1)
    shifted = rows - rows.max(dim=-1, keepdim=True).values.detach()
    log_p = shifted - shifted.exp().sum(dim=-1, keepdim=True).log()
    losses = -log_p.gather(-1, classes.unsqueeze(-1)).squeeze(-1)
    if label_smoothing > 0:
        losses = (1 - label_smoothing) * losses - label_smoothing * log_p.mean(dim=-1)
    return (losses.sum() / max(len(losses), 1)).to(logits.dtype)


def cross_entropy_gradient(
    logits: Tensor, targets: Tensor, ignore_index: int = -100, label_smoothing: float = 0.0
) -> Tensor:
    rows, classes, kept = kept_positions(logits, targets, ignore_index, label_smoothing)
    q = (1 - label_smoothing) * F.one_hot(classes, logits.shape[-1]) + label_smoothing / logits.shape[-1]
    gradient = torch.zeros_like(logits)
    gradient[kept] = ((rows.softmax(-1) - q) / max(int(kept.sum()), 1)).to(logits.dtype)
    return gradient
