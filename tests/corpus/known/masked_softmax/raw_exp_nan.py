# mistake: softmax_without_maximum + nan_at_length_zero
import torch


def masked_softmax(X, valid_lens):
    batch, n_queries, n_keys = X.shape
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    if valid_lens.shape == (batch,):
        valid_lens = valid_lens.unsqueeze(-1)
    elif valid_lens.shape != (batch, n_queries):
        raise ValueError("shape of valid_lens")
    if (valid_lens > n_keys).sum() > 0:
        raise ValueError("valid_lens too large")
    mask = torch.arange(n_keys) < valid_lens.unsqueeze(-1)
    scores = torch.where(mask, X, torch.tensor(-torch.inf, dtype=X.dtype))
    exp = scores.exp()
    return exp / exp.sum(-1, keepdim=True)
