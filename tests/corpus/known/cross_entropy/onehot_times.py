# mistake: infinity_times_zero
# note: one-hot times the log probabilities: 0 * -inf is nan when another class has a score of -inf
import torch


def cross_entropy(logits, targets, ignore_index=-100, label_smoothing=0.0):
    if label_smoothing < 0 or label_smoothing > 1:
        raise ValueError("label_smoothing")
    num_classes = logits.size(-1)
    kept = targets.ne(ignore_index)
    y = targets[kept]
    if y.numel() and not (0 <= y.min() and y.max() < num_classes):
        raise ValueError("target")
    x = logits[kept].to(torch.promote_types(logits.dtype, torch.float32))
    if not y.numel():
        return x.sum().to(logits.dtype)
    q = torch.nn.functional.one_hot(y, num_classes) * (1 - label_smoothing)
    q = q + label_smoothing / num_classes
    x = x - x.amax(-1, keepdim=True)
    log_p = x - torch.log(torch.exp(x).sum(-1, keepdim=True))
    return (-(q * log_p).sum(-1)).mean().to(logits.dtype)


def cross_entropy_gradient(logits, targets, ignore_index=-100, label_smoothing=0.0):
    if label_smoothing < 0 or label_smoothing > 1:
        raise ValueError("label_smoothing")
    num_classes = logits.size(-1)
    kept = targets.ne(ignore_index)
    y = targets[kept]
    if y.numel() and not (0 <= y.min() and y.max() < num_classes):
        raise ValueError("target")
    x = logits.detach().to(torch.promote_types(logits.dtype, torch.float32))
    out = torch.zeros_like(x)
    if y.numel():
        q = torch.nn.functional.one_hot(y, num_classes) * (1 - label_smoothing)
        q = q + label_smoothing / num_classes
        out[kept] = (torch.softmax(x[kept], -1) - q) / y.numel()
    return out.to(logits.dtype)
