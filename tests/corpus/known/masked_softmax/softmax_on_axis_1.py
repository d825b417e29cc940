# mistake: softmax_over_queries
import torch
import torch.nn.functional as F


def masked_softmax(X, valid_lens):
    if valid_lens is None:
        return F.softmax(X, dim=2)
    B, Q, K = X.shape
    if valid_lens.shape == (B,):
        lens = valid_lens.view(B, 1, 1)
    elif valid_lens.shape == (B, Q):
        lens = valid_lens.view(B, Q, 1)
    else:
        raise ValueError("bad valid_lens")
    if lens.amax() > K:
        raise ValueError("bad valid_lens")
    ok = (torch.arange(K).view(1, 1, K) < lens).expand_as(X)
    scores = torch.where(ok, X, -torch.inf)
    return torch.where(ok, F.softmax(scores, dim=1), 0)
