# mistake: finite_filler
import torch

NEG = -1e5


def masked_softmax(X, valid_lens):
    if valid_lens is None:
        return torch.softmax(X, 2)
    if valid_lens.shape != X.shape[:1] and valid_lens.shape != X.shape[:2]:
        raise ValueError(valid_lens.shape)
    n_keys = X.shape[2]
    if valid_lens.max() > n_keys:
        raise ValueError("valid_lens > n_keys")
    lengths = valid_lens[:, None] if valid_lens.dim() == 1 else valid_lens
    mask = torch.arange(n_keys) < lengths.unsqueeze(2)
    attn = torch.softmax(torch.where(mask, X, NEG), 2)
    return torch.where(mask, attn, 0.0)
