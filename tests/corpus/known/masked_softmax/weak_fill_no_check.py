# mistake: finite_filler + lengths_not_checked
import torch
import torch.nn.functional as F


def check(X, valid_lens):
    batch, n_queries, n_keys = X.size()
    ok = [torch.Size([batch]), torch.Size([batch, n_queries])]
    if valid_lens.size() not in ok:
        raise ValueError("wrong shape")


def masked_softmax(X, valid_lens):
    if valid_lens is None:
        return F.softmax(X, dim=2)
    check(X, valid_lens)
    if valid_lens.dim() == 1:
        valid_lens = valid_lens.unsqueeze(1).repeat(1, X.size(1))
    cols = torch.arange(X.size(2)).view(1, 1, -1)
    padding = cols >= valid_lens.unsqueeze(-1)
    empty = padding.all(dim=-1, keepdim=True)
    w = F.softmax(X.masked_fill(padding, -20), dim=2)
    return w * ~empty
