import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=2)

    batch, n_queries, n_keys = X.shape
    if valid_lens.shape == (batch,):
        valid_lens = valid_lens.repeat_interleave(n_queries).view(batch, n_queries)
    if valid_lens.shape != (batch, n_queries):
        raise ValueError("shape")
    if (valid_lens > n_keys).sum() > 0:
        raise ValueError("length")

    mask = torch.arange(n_keys).expand(batch, n_queries, n_keys) < valid_lens.unsqueeze(2)
    probs = torch.softmax(X.masked_fill(mask.logical_not(), -torch.inf), dim=2)
    return probs.masked_fill(mask.logical_not(), 0.0)
