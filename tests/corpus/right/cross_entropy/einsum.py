# right: products as einsum
import torch


def _wide(x):
    return x if x.dtype == torch.float64 else x.float()


def _prepare(logits, targets, ignore_index, s):
    if not 0.0 <= s <= 1.0:
        raise ValueError("label_smoothing must lie in [0, 1]")
    if tuple(logits.shape[:-1]) != tuple(targets.shape):
        raise ValueError("targets must have one class per row of logits")
    n_classes = logits.shape[-1]
    z = _wide(logits).reshape(-1, n_classes)
    t = targets.reshape(-1)
    kept = t != ignore_index
    if ((t < 0) | (t >= n_classes))[kept].any():
        raise ValueError("a target is no class")
    z, t = z[kept], t[kept]
    onehot = torch.zeros_like(z).scatter(1, t[:, None], 1.0)
    z = z - z.detach().amax(dim=-1, keepdim=True)
    return z, onehot, kept, n_classes


def cross_entropy(logits, targets, ignore_index=-100, label_smoothing=0.0):
    z, onehot, kept, n_classes = _prepare(logits, targets, ignore_index, label_smoothing)
    if len(z) == 0:
        return (logits * 0.0).nan_to_num(0.0, 0.0, 0.0).sum()
    logp = z - z.exp().sum(-1, keepdim=True).log()
    safe = logp.masked_fill(onehot == 0, 0.0)
    picked = -torch.einsum("nc,nc->n", onehot, safe)
    loss = (1 - label_smoothing) * picked
    if label_smoothing > 0:
        loss = loss + label_smoothing * -torch.einsum("nc->n", logp) / n_classes
    return (torch.einsum("n->", loss) / len(z)).to(logits.dtype)


def cross_entropy_gradient(logits, targets, ignore_index=-100, label_smoothing=0.0):
    z, onehot, kept, n_classes = _prepare(logits, targets, ignore_index, label_smoothing)
    out = torch.zeros(kept.numel(), n_classes, dtype=z.dtype, device=z.device)
    if len(z):
        e = z.exp()
        p = torch.einsum("nc,n->nc", e, 1 / torch.einsum("nc->n", e))
        q = (1 - label_smoothing) * onehot + label_smoothing / n_classes
        out[kept] = ((p - q) / len(z)).detach()
    return out.reshape(logits.shape).to(logits.dtype)
