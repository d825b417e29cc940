import torch
from torch import Tensor


def _row(scores, length):
    keep = torch.arange(scores.shape[0], device=scores.device) < length
    scores = torch.where(keep, scores, -torch.inf)
    top = torch.where(keep.any(), scores.max(), torch.zeros_like(scores[0]))
    e = torch.where(keep, torch.exp(scores - top), torch.zeros_like(scores))
    total = e.sum()
    return e / torch.where(total > 0, total, torch.ones_like(total))


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    batch, n_queries, n_keys = X.shape
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    if valid_lens.shape != (batch,) and valid_lens.shape != (batch, n_queries):
        raise ValueError("valid_lens does not match X")
    if torch.count_nonzero(valid_lens > n_keys):
        raise ValueError("some lengths are larger than n_keys")
    lens = valid_lens if valid_lens.dim() == 2 else valid_lens[:, None].expand(batch, n_queries)
    return torch.vmap(torch.vmap(_row))(X, lens)
