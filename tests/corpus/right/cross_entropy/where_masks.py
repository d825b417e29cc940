# right: No rows are selected: ignored ones are replaced by zeros, targets by class 0, and everything keeps its shape; no helper kept_positions.
import torch
from torch import Tensor


def prepare(logits: Tensor, targets: Tensor, ignore_index: int, s: float):
    if s < 0 or s > 1 or s != s:
        raise ValueError(f"label_smoothing {s}")
    keep = targets.ne(ignore_index)
    bad = keep & ((targets < 0) | (targets >= logits.size(-1)))
    if bool(bad.any()):
        raise ValueError("target out of range")
    safe = torch.where(keep, targets, 0)
    z = torch.where(keep.unsqueeze(-1), logits, 0.0)
    if z.dtype not in (torch.float32, torch.float64):
        z = z.float()
    return z, safe, keep, keep.sum().clamp(min=1)


def cross_entropy(logits: Tensor, targets: Tensor, ignore_index: int = -100, label_smoothing: float = 0.0) -> Tensor:
    z, safe, keep, n = prepare(logits, targets, ignore_index, label_smoothing)
    top = z.amax(-1, keepdim=True)
    lse = top.squeeze(-1) + torch.log(torch.exp(z - top).sum(-1))
    picked = torch.gather(z, -1, safe[..., None])[..., 0]
    loss = lse - picked
    if label_smoothing:
        loss = torch.lerp(loss, lse - z.mean(-1), label_smoothing)
    return (torch.where(keep, loss, 0.0).sum() / n).to(logits.dtype)


def cross_entropy_gradient(
    logits: Tensor, targets: Tensor, ignore_index: int = -100, label_smoothing: float = 0.0
) -> Tensor:
    z, safe, keep, n = prepare(logits, targets, ignore_index, label_smoothing)
    e = torch.exp(z - z.amax(-1, keepdim=True))
    g = e / e.sum(-1, keepdim=True) - label_smoothing / z.size(-1)
    g = g.scatter_add(-1, safe[..., None], torch.full_like(z[..., :1], label_smoothing - 1))
    return (g * (keep / n)[..., None]).to(logits.dtype)
