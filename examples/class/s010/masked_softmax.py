import torch


def masked_softmax(X, valid_lens):
    print("masked_softmax", X.shape, valid_lens)
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    batch, n_queries, n_keys = X.shape
    if valid_lens.shape != (batch,) and valid_lens.shape != (batch, n_queries):
        raise ValueError("bad shape")
    if (valid_lens > n_keys).any():
        raise ValueError("bad length")
    lens = valid_lens.reshape(batch, -1, 1)
    mask = torch.arange(n_keys) < lens
    print("mask", mask)
    weights = torch.softmax(X.masked_fill(~mask, -torch.inf), dim=-1)
    weights = weights.masked_fill(~mask, 0.0)
    print("weights", weights)
    return weights
