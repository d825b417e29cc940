# right: the kept rows first
import math

import torch


def target_distribution(targets, n_classes, s, dtype):
    q = torch.nn.functional.one_hot(targets, n_classes).to(dtype)
    return q * (1 - s) + s / n_classes


def cross_entropy(logits, targets, ignore_index=-100, label_smoothing=0.0):
    # an expectation of (log-normaliser - score) under q; scores without weight are not looked at
    kept = _validated(logits, targets, ignore_index, label_smoothing)
    x = logits[kept]
    if x.dtype in (torch.float16, torch.bfloat16):
        x = x.float()
    y = targets[kept].long()
    n = y.numel()
    if n == 0:
        return x.sum().to(logits.dtype)
    q = target_distribution(y, x.shape[-1], label_smoothing, x.dtype)
    big = x.max(-1, keepdim=True)[0].detach()
    norm = ((x - big).exp().sum(-1, keepdim=True)).log() + big
    cost = torch.where(q > 0, q * torch.where(q > 0, norm - x, 0.0), 0.0)
    return (cost.sum() / n).to(logits.dtype)


def cross_entropy_gradient(logits, targets, ignore_index=-100, label_smoothing=0.0):
    kept = _validated(logits, targets, ignore_index, label_smoothing)
    x = logits.detach()
    if x.dtype in (torch.float16, torch.bfloat16):
        x = x.float()
    grad = torch.zeros_like(x)
    n = int(kept.sum())
    if n > 0:
        e = (x[kept] - x[kept].max(-1, keepdim=True)[0]).exp()
        q = target_distribution(targets[kept].long(), x.shape[-1], label_smoothing, x.dtype)
        grad[kept] = (e / e.sum(-1, keepdim=True) - q) / n
    return grad.to(logits.dtype)


def _validated(logits, targets, ignore_index, s):
    if math.isnan(s) or s < 0 or s > 1:
        raise ValueError("label_smoothing must be in [0, 1]")
    kept = targets != ignore_index
    wanted = targets[kept]
    if torch.any(wanted < 0) or torch.any(wanted >= logits.shape[-1]):
        raise ValueError("target must name a class")
    return kept
