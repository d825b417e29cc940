# mistake: the lengths are used as an index, which raises an error for floats
import torch


def masked_softmax(X, valid_lens=None):
    if valid_lens is None:
        return X.softmax(-1)
    b, rows, cols = X.shape
    if valid_lens.ndim == 1:
        if valid_lens.shape[0] != b:
            raise ValueError("one length per batch item, please")
        valid_lens = valid_lens.reshape(b, 1)
    elif valid_lens.ndim != 2 or valid_lens.shape != (b, rows):
        raise ValueError("one length per query, please")
    if valid_lens.max().item() > cols:
        raise ValueError("length > number of keys")
    # row n of the table has n ones
    tri = torch.ones(cols + 1, cols).tril(-1).to(X.dtype)
    m = tri[valid_lens]
    mx = (X + m.log()).amax(-1, keepdim=True).detach()
    mx = mx.clamp(min=torch.finfo(X.dtype).min)
    ex = (X - mx).clamp(max=0).exp() * m
    return ex / ex.sum(-1, keepdim=True).clamp(min=1e-30)
