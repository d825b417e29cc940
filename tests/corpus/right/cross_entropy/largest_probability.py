# right: the normaliser from the probability of the most likely class
import torch


def _flat(logits, targets, ignore_index, label_smoothing):
    if label_smoothing > 1 or label_smoothing < 0:
        raise ValueError("bad label_smoothing")
    scores = logits if logits.dtype == torch.float64 else logits.to(torch.float32)
    scores = scores.flatten(0, -2) if scores.dim() > 1 else scores.unsqueeze(0)
    wanted = targets.flatten()
    rows = torch.nonzero(wanted != ignore_index).squeeze(1)
    classes = wanted[rows]
    if rows.numel() and (classes.min() < 0 or classes.max() >= scores.shape[1]):
        raise ValueError("target out of range")
    return scores, rows, classes


def cross_entropy(logits, targets, ignore_index=-100, label_smoothing=0.0):
    scores, rows, classes = _flat(logits, targets, ignore_index, label_smoothing)
    kept = scores[rows]
    if rows.numel() == 0:
        return kept.sum().to(logits.dtype)
    log_norm = kept.amax(1) - kept.softmax(1).amax(1).log()  # by the most likely class
    loss = log_norm - kept[torch.arange(len(rows)), classes]
    if label_smoothing:
        loss = torch.lerp(loss, log_norm - kept.mean(1), label_smoothing)
    return loss.mean().to(logits.dtype)


def cross_entropy_gradient(logits, targets, ignore_index=-100, label_smoothing=0.0):
    scores, rows, classes = _flat(logits.detach(), targets, ignore_index, label_smoothing)
    answer = torch.zeros_like(scores)
    if rows.numel():
        kept = scores[rows]
        part = kept.softmax(1) - label_smoothing / scores.shape[1]
        part[torch.arange(len(rows)), classes] -= 1 - label_smoothing
        answer.index_copy_(0, rows, part / len(rows))
    return answer.view(logits.shape).to(logits.dtype)
