import torch
import torch.nn.functional as F


def masked_softmax(X, valid_lens):
    if valid_lens is None:
        return F.softmax(X, dim=-1)
    if valid_lens.shape != X.shape[:1] and valid_lens.shape != X.shape[:2]:
        raise ValueError("valid_lens does not fit X")
    if valid_lens.max() > X.shape[2]:
        raise ValueError("valid_lens is too long")
    if valid_lens.dim() == 1:
        valid_lens = valid_lens[:, None]
    padding = torch.arange(X.shape[2])[None, None] >= valid_lens[:, :, None]
    scores = X.clone()
    scores.masked_fill(padding, float("-inf"))
    weights = F.softmax(scores, dim=-1)
    return torch.where(padding, torch.zeros_like(weights), weights)
