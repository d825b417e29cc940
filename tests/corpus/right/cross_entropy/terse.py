# right: in few lines
import torch


def _check(x, t, i, s):
    k = t != i
    if not 0 <= s <= 1 or (k & ((t < 0) | (t >= x.shape[-1]))).any():
        raise ValueError
    return k, t.where(k, 0)[..., None], x.to(torch.promote_types(x.dtype, torch.float32))


def cross_entropy(logits, targets, ignore_index=-100, label_smoothing=0.0):
    s = label_smoothing
    k, t, x = _check(logits, targets, ignore_index, s)
    x = x[k]
    m = x.amax(-1, True).detach()
    L = (x - m).exp().sum(-1).log() + m[:, 0]
    l = (1 - s) * (L - x.gather(-1, t[k])[:, 0]) + (s * (L - x.mean(-1)) if s else 0)
    return (l.sum() / max(1, len(l))).to(logits.dtype)


def cross_entropy_gradient(logits, targets, ignore_index=-100, label_smoothing=0.0):
    s = label_smoothing
    k, t, x = _check(logits, targets, ignore_index, s)
    g = x.detach().softmax(-1) - s / x.shape[-1]
    g = g.scatter_add(-1, t, g.new_full(t.shape, s - 1)) / k.sum().clamp(min=1)
    return g.masked_fill(~k[..., None], 0).to(logits.dtype)
