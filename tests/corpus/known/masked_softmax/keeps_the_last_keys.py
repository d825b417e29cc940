# mistake: last_keys_valid
import torch
import torch.nn.functional as F


def check(X, valid_lens):
    batch, n_queries, n_keys = X.size()
    ok = [torch.Size([batch]), torch.Size([batch, n_queries])]
    if valid_lens.size() not in ok:
        raise ValueError("wrong shape")
    if torch.any(valid_lens > n_keys):
        raise ValueError("too long")


def masked_softmax(X, valid_lens):
    if valid_lens is None:
        return F.softmax(X, dim=2)
    check(X, valid_lens)
    if valid_lens.dim() == 1:
        valid_lens = valid_lens.unsqueeze(1).repeat(1, X.size(1))
    cols = torch.arange(X.size(2)).view(1, 1, -1)
    padding = cols < X.size(2) - valid_lens.unsqueeze(-1)
    empty = padding.all(dim=-1, keepdim=True)
    bias = torch.zeros_like(X).masked_fill(padding & ~empty, float("-inf"))
    w = F.softmax(X + bias, dim=2)
    return w * ~padding
