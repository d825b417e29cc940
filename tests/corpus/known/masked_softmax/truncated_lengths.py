# mistake: lengths_cut_to_integers
# float lengths are converted to integers first, so a length of 2.5 gives two valid keys and not three
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    n_batch, n_q, n_k = X.size()
    if valid_lens is None:
        valid_lens = torch.full((n_batch,), n_k, device=X.device)
    if valid_lens.size() != (n_batch,) and valid_lens.size() != (n_batch, n_q):
        raise ValueError("valid_lens does not fit X")
    if (valid_lens > n_k).any().item():
        raise ValueError("a valid length is larger than the number of keys")
    lens = valid_lens.to(torch.int64).reshape(n_batch, -1, 1)
    mask = torch.arange(n_k, device=X.device).expand(n_batch, n_q, n_k) < lens

    masked = torch.where(mask, X, torch.finfo(X.dtype).min)
    peak = masked.amax(dim=-1, keepdim=True).detach()
    e = torch.exp(masked - peak) * mask
    total = e.sum(dim=-1, keepdim=True)
    return e / torch.where(total == 0, torch.ones_like(total), total)
