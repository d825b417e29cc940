# right: helpers for the loss and the gradient of kept rows
import torch


def _nll(rows, wanted):
    """The loss of each row, without smoothing."""
    return _log_sum(rows) - torch.take_along_dim(rows, wanted[:, None], dim=1)[:, 0]


def _uniform(rows):
    """The loss of each row against equal probabilities."""
    return _log_sum(rows) - rows.mean(dim=1)


def _log_sum(rows):
    top = rows.max(dim=1).values
    return top + torch.log(torch.exp(rows - top[:, None]).sum(dim=1))


def _rows(logits, targets, ignore_index, s):
    if s < 0 or s > 1:
        raise ValueError(f"label_smoothing is {s}")
    n_classes = logits.size(-1)
    rows = logits.to(torch.promote_types(logits.dtype, torch.float32)).reshape(-1, n_classes)
    wanted = targets.reshape(-1)
    places = (wanted != ignore_index).nonzero()[:, 0]
    wanted = wanted[places]
    if ((wanted < 0) | (wanted >= n_classes)).any():
        raise ValueError("a target is out of range")
    return rows, places, wanted


def cross_entropy(logits, targets, ignore_index=-100, label_smoothing=0.0):
    rows, places, wanted = _rows(logits, targets, ignore_index, label_smoothing)
    if len(places) == 0:
        return (rows * 0).sum().to(logits.dtype)
    kept = rows[places]
    loss = _nll(kept, wanted).mean()
    if label_smoothing > 0:
        loss = (1 - label_smoothing) * loss + label_smoothing * _uniform(kept).mean()
    return loss.to(logits.dtype)


def cross_entropy_gradient(logits, targets, ignore_index=-100, label_smoothing=0.0):
    rows, places, wanted = _rows(logits, targets, ignore_index, label_smoothing)
    p = torch.softmax(rows[places], dim=1)
    q = torch.full_like(p, label_smoothing / p.shape[1])
    q[torch.arange(len(q)), wanted] += 1 - label_smoothing
    gradient = torch.zeros_like(rows)
    gradient[places] = (p - q) / max(1, len(places))
    return gradient.reshape(logits.shape).to(logits.dtype)
