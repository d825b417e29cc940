import torch
import torch.nn.functional as F


def masked_softmax(X, valid_lens):
    if valid_lens is None:
        return F.softmax(X, dim=-1)

    batch_size, n_queries, n_keys = X.shape

    # both shapes become (batch, n_queries)
    if valid_lens.dim() == 1 and valid_lens.shape[0] == batch_size:
        valid_lens = torch.unsqueeze(valid_lens, 1).expand(-1, n_queries)
    elif valid_lens.shape != (batch_size, n_queries):
        raise ValueError("valid_lens has the wrong shape")

    if torch.max(valid_lens) > n_keys:
        raise ValueError("valid_lens is too big")

    positions = torch.arange(n_keys)
    mask = positions[None, None, :] < valid_lens[:, :, None]
    X = X.masked_fill(mask == False, float("-inf"))
    weights = F.softmax(X, dim=-1)
    return weights
