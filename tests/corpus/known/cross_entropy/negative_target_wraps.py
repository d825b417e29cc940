# mistake: targets_not_checked
# A negative target of a kept position is not refused: indexing takes it from the end.
import torch
import torch.nn.functional as F


def kept_positions(logits, targets, ignore_index, label_smoothing):
    if label_smoothing < 0 or label_smoothing > 1:
        raise ValueError("label_smoothing")
    C = logits.size(-1)
    flat, y = logits.reshape(-1, C), targets.reshape(-1)
    index = torch.nonzero(y != ignore_index).flatten()
    y = y.index_select(0, index)
    if y.numel() and y.max() >= C:
        raise ValueError("target")
    return flat.index_select(0, index).double(), y, index


def cross_entropy(logits, targets, ignore_index=-100, label_smoothing=0.0):
    z, y, index = kept_positions(logits, targets, ignore_index, label_smoothing)
    if y.numel() == 0:
        return (logits.reshape(-1)[:0] * 0).sum()
    p_max = z.detach().max(1, keepdim=True)[0]
    minus_log_p = (z - p_max).exp().sum(1, keepdim=True).log() + p_max - z
    loss = minus_log_p[torch.arange(len(y), device=y.device), y]
    if label_smoothing != 0:
        loss = (1 - label_smoothing) * loss + label_smoothing * minus_log_p.mean(1)
    return loss.mean().type_as(logits)


def cross_entropy_gradient(logits, targets, ignore_index=-100, label_smoothing=0.0):
    z, y, index = kept_positions(logits, targets, ignore_index, label_smoothing)
    C = logits.size(-1)
    grad = torch.zeros(targets.numel(), C, dtype=torch.float64, device=logits.device)
    if len(y):
        g = F.softmax(z, dim=1)
        g -= label_smoothing / C
        g[torch.arange(len(y), device=y.device), y] -= 1 - label_smoothing
        grad.index_copy_(0, index, g / len(y))
    return grad.reshape(logits.shape).to(logits.dtype)
