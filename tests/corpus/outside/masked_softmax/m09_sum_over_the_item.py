# mistake: the denominator sums over queries and keys, so a whole batch item sums to 1
# true: the weights of one row are in the right proportion but a single row sums to less than 1 (it is right with a single query)
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    b, q, n = X.shape
    if valid_lens is None:
        m = X.new_ones(b, q, n)
    elif valid_lens.shape == (b,) or valid_lens.shape == (b, q):
        if (valid_lens > n).any():
            raise ValueError("length > n_keys")
        ar = torch.arange(n, device=X.device).repeat(b, q, 1)
        m = (ar < valid_lens.view(b, -1, 1)).to(X.dtype)
    else:
        raise ValueError("valid_lens must have one or two axes that fit X")
    masked = X.masked_fill(m == 0, -torch.inf)
    c = masked.amax(dim=(1, 2), keepdim=True)
    c = torch.nan_to_num(c, neginf=0.0)
    e = torch.exp(masked - c)
    s = e.sum(dim=(1, 2), keepdim=True)
    return e / (s + (s == 0))
