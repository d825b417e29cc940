import torch
from torch.nn.functional import softmax


def masked_softmax(X, valid_lens):
    if valid_lens is None:
        return softmax(X, dim=-1)
    n_batch, n_q, n_k = X.size()
    size = list(valid_lens.size())
    if size != [n_batch] and size != [n_batch, n_q]:
        raise ValueError("valid_lens: wrong size")
    if (valid_lens > n_k).any():
        raise ValueError("valid_lens: larger than the number of keys")
    if len(size) == 1:
        valid_lens = valid_lens[:, None].repeat(1, n_q)
    pad = torch.arange(n_k)[None, None, :] >= valid_lens[:, :, None]
    result = softmax(X.masked_fill(pad, -float("inf")), dim=-1)
    return result.nan_to_num(0.0)
