# mistake: full_length_refused
import torch


def masked_softmax(X, valid_lens=None):
    if valid_lens is None:
        return X.softmax(-1)
    bs, nq, nk = X.shape
    if valid_lens.ndim == 1:
        if valid_lens.shape[0] != bs:
            raise ValueError("one length per batch item, please")
        valid_lens = valid_lens.reshape(bs, 1)
    elif valid_lens.ndim != 2 or valid_lens.shape != (bs, nq):
        raise ValueError("one length per query, please")
    if valid_lens.max().item() >= nk:
        raise ValueError("length too big for the number of keys")
    # row n of the table has n ones
    table = torch.ones(nk + 1, nk).tril(-1).to(X.dtype)
    allowed = table[valid_lens.ceil().long()]
    top = (X + allowed.log()).amax(-1, keepdim=True).detach()
    top = top.clamp(min=torch.finfo(X.dtype).min)
    e = (X - top).clamp(max=0).exp() * allowed
    return e / e.sum(-1, keepdim=True).clamp(min=1e-30)
