import torch


def mask_softmax(X, valid_lens):
    if valid_lens is None:
        return torch.softmax(X, -1)
    bs, nq, nk = X.shape
    if valid_lens.shape == (bs,):
        limit = valid_lens.view(bs, 1, 1)
    elif valid_lens.shape == (bs, nq):
        limit = valid_lens.view(bs, nq, 1)
    else:
        raise ValueError("valid_lens does not fit X")
    if (limit > nk).any():
        raise ValueError("a length is larger than nk")
    inside = torch.arange(nk).view(1, 1, nk) < limit
    p = torch.softmax(X.masked_fill(~inside, -torch.inf), -1)
    return torch.where(inside, p, 0.0)
