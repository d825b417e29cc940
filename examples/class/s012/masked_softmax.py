import torch


def masked_softmax(X, valid_lens):
    if valid_lens is not None:
        b, nq, nk = X.shape
        if valid_lens.shape == (b,):
            valid_lens = valid_lens[:, None].expand(b, nq)
        if valid_lens.shape != (b, nq):
            raise ValueError("valid_lens must be (batch,) or (batch, n_queries)")
        if valid_lens.max() > nk:
            raise ValueError("valid_lens must not exceed n_keys")
        mask = torch.arange(nk) >= valid_lens[:, :, None]
        X[mask] = float("-inf")
        return torch.softmax(X, dim=-1).masked_fill(mask, 0.0)
    return torch.softmax(X, dim=-1)
