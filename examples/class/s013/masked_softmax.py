import torch


def masked_softmax(X, valid_lens):
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    b, n, m = X.shape
    if valid_lens.shape == (b, n):
        pass
    elif valid_lens.shape == (b,):
        valid_lens = valid_lens.unsqueeze(1).expand(b, n)
    else:
        raise ValueError("lengths of the wrong shape")
    if (valid_lens > m).any():
        raise ValueError("lengths that are too large")
    real = torch.arange(m)[None, None] < valid_lens[..., None]
    # subtract the largest real score, then exp is safe
    largest = X.masked_fill(~real, -torch.inf).amax(dim=-1, keepdim=True)
    largest = largest.masked_fill(largest == -torch.inf, 0.0).detach()
    e = torch.exp((X - largest).masked_fill(~real, -torch.inf))
    total = e.sum(dim=-1, keepdim=True)
    return e / total.masked_fill(total == 0, 1.0)
