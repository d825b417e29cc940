# mistake: smoothed_over_the_others
# note: the smoothing is shared among the other classes only, s/(C-1)
import torch


def prepare(logits, targets, ignore_index, smoothing):
    if not 0 <= smoothing <= 1:
        raise ValueError("smoothing must be between 0 and 1")
    c = logits.shape[-1]
    x = logits.reshape(-1, c)
    if x.dtype != torch.float64:
        x = x.float()
    y = targets.reshape(-1)
    kept = y != ignore_index
    good = y[kept]
    if ((good < 0) | (good >= c)).any():
        raise ValueError("no such class")
    return x, y, kept, c


def log_probs(x):
    x = x - x.max(dim=1, keepdim=True).values
    return x - x.exp().sum(dim=1, keepdim=True).log()


def cross_entropy(logits, targets, ignore_index=-100, label_smoothing=0.0):
    x, y, kept, c = prepare(logits, targets, ignore_index, label_smoothing)
    x, y = x[kept], y[kept]
    if y.numel() == 0:
        return x.sum().to(logits.dtype)
    lp = log_probs(x)
    loss = -lp.gather(1, y.unsqueeze(1)).squeeze(1)
    if label_smoothing > 0:
        share = label_smoothing / (c - 1)
        q = torch.full_like(lp, share)
        q.scatter_(1, y[:, None], 1 - label_smoothing)
        loss = -(q * lp).sum(dim=1)
    return loss.mean().to(logits.dtype)


def cross_entropy_gradient(logits, targets, ignore_index=-100, label_smoothing=0.0):
    x, y, kept, c = prepare(logits.detach(), targets, ignore_index, label_smoothing)
    grad = torch.zeros_like(x)
    n = int(kept.sum())
    if n:
        q = torch.full_like(x[kept], label_smoothing / (c - 1))
        q[torch.arange(n), y[kept]] = 1 - label_smoothing
        grad[kept] = (torch.softmax(x[kept], dim=1) - q) / n
    return grad.reshape(logits.shape).to(logits.dtype)
