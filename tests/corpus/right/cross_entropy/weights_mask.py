# right: a mask of weights over all positions
import torch


class _Loss:
    """Both answers share the scores, the mask and the target distribution."""

    def __init__(self, logits, targets, ignore_index, label_smoothing):
        if not (label_smoothing >= 0 and label_smoothing <= 1):
            raise ValueError("label_smoothing outside [0, 1]")
        self.dtype = logits.dtype
        self.c = logits.shape[-1]
        self.s = float(label_smoothing)
        self.keep = targets.ne(ignore_index)
        self.safe = torch.where(self.keep, targets, torch.zeros_like(targets)).long()
        if bool((self.safe < 0).any()) or bool((self.safe >= self.c).any()):
            raise ValueError("targets hold a class that does not exist")
        work = torch.float64 if logits.dtype == torch.float64 else torch.float32
        self.z = logits.to(work)
        self.z = torch.where(self.keep.unsqueeze(-1), self.z, torch.zeros_like(self.z))
        self.n = self.keep.sum().clamp_min(1)

    def value(self):
        shift = self.z.detach().max(dim=-1, keepdim=True).values
        z = self.z - shift
        norm = z.exp().sum(dim=-1).log()
        own = torch.take_along_dim(z, self.safe.unsqueeze(-1), dim=-1).squeeze(-1)
        row = norm - own
        if self.s != 0.0:
            row = (1.0 - self.s) * row + self.s * (norm - z.sum(dim=-1) / self.c)
        row = torch.where(self.keep, row, torch.zeros_like(row))
        return (row.sum() / self.n).to(self.dtype)

    @torch.no_grad()
    def slope(self):
        p = torch.softmax(self.z, dim=-1)
        q = torch.full_like(p, self.s / self.c)
        hit = torch.arange(self.c, device=p.device) == self.safe.unsqueeze(-1)
        q = q + hit * (1.0 - self.s)
        g = (p - q) / self.n * self.keep.unsqueeze(-1)
        return g.to(self.dtype)


def cross_entropy(logits, targets, ignore_index=-100, label_smoothing=0.0):
    return _Loss(logits, targets, ignore_index, label_smoothing).value()


def cross_entropy_gradient(logits, targets, ignore_index=-100, label_smoothing=0.0):
    return _Loss(logits, targets, ignore_index, label_smoothing).slope()
