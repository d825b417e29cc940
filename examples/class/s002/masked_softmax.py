import torch
import torch.nn.functional as F


def masked_softmax(X, valid_lens):
    if valid_lens is None:
        return F.softmax(X, dim=-1)
    batch, n_queries, n_keys = X.shape
    if valid_lens.shape not in [(batch,), (batch, n_queries)]:
        raise ValueError("wrong shape of valid_lens")
    if valid_lens.max() > n_keys:
        raise ValueError("valid length > number of keys")
    if valid_lens.dim() == 1:
        valid_lens = valid_lens.unsqueeze(1).expand(batch, n_queries)

    mask = torch.arange(n_keys).view(1, 1, -1) < valid_lens.unsqueeze(-1)
    scores = torch.where(mask, X, float("-inf"))
    out = F.softmax(scores, dim=-1)
    return torch.where(mask, out, torch.zeros_like(out))
