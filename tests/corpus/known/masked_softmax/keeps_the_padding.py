# mistake: polarity_inverted
import torch
import torch.nn.functional as F


def masked_softmax(X, valid_lens):
    if valid_lens is None:
        return F.softmax(X, -1)
    B, rows, cols = X.shape
    if valid_lens.shape == (B,):
        valid_lens = valid_lens[:, None].expand(B, rows)
    if valid_lens.shape != (B, rows) or valid_lens.max() > cols:
        raise ValueError("valid_lens")
    pos = torch.arange(cols).expand(B, rows, cols)
    mask = pos < valid_lens[..., None]
    scores = X.masked_fill(mask, float("-inf"))
    return F.softmax(scores, -1).masked_fill(mask, 0)
