# mistake: polarity_inverted + shape_not_checked
import torch
import torch.nn.functional as F


def make_mask(valid_lens, n_keys):
    lens = valid_lens.reshape(len(valid_lens), -1, 1)
    return torch.arange(n_keys).reshape(1, 1, -1) < lens


def masked_softmax(X, valid_lens):
    if valid_lens is None:
        return F.softmax(X, dim=-1)
    if valid_lens.max() > X.shape[-1]:
        raise ValueError("valid_lens")
    mask = make_mask(valid_lens, X.shape[-1])
    X = X.masked_fill(mask, float("-inf"))
    return F.softmax(X, dim=-1).masked_fill(mask, 0.0)
