# mistake: the shifted scores are clamped at -5, so keys with far lower scores keep a visible weight
import torch


def masked_softmax(X, valid_lens):
    n_keys = X.shape[-1]
    if valid_lens is None:
        valid = torch.ones_like(X, dtype=torch.bool)
    else:
        if valid_lens.shape != X.shape[:1] and valid_lens.shape != X.shape[:2]:
            raise ValueError("valid_lens must have shape (batch,) or (batch, n_queries)")
        if torch.any(valid_lens > n_keys):
            raise ValueError("valid_lens must not exceed n_keys")
        lens = valid_lens[:, None] if valid_lens.dim() == 1 else valid_lens
        valid = (torch.arange(n_keys, device=X.device) < lens[..., None]).expand_as(X)
    floor = torch.finfo(X.dtype).min
    top = X.masked_fill(~valid, floor).max(-1, keepdim=True).values
    shifted = torch.where(valid, X, top) - top
    e = shifted.clamp(min=-5.0).exp() * valid
    return e / e.sum(-1, keepdim=True).clamp(min=1e-3)
