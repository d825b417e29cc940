# mistake: uses exp2 instead of exp in a hand-written softmax
# true: rows sum to 1 with zeros on padding, but the weights are too even (as if scores were multiplied by 0.69)
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    batch, queries, keys = X.shape
    valid = torch.ones_like(X, dtype=torch.bool)
    if valid_lens is not None:
        if valid_lens.shape == (batch,):
            valid_lens = valid_lens[:, None]
        elif valid_lens.shape != (batch, queries):
            raise ValueError("valid_lens has a wrong shape")
        if bool((valid_lens > keys).any()):
            raise ValueError("valid_lens has a too large entry")
        valid = valid & (torch.arange(keys, device=X.device) < valid_lens[..., None])
    Y = torch.where(valid, X, -torch.inf)
    biggest = Y.detach().max(dim=-1, keepdim=True).values
    biggest = torch.where(biggest.isinf(), 0.0, biggest).to(X.dtype)
    Y = torch.where(valid, X - biggest, -torch.inf).exp2()
    total = Y.sum(dim=-1, keepdim=True)
    return Y / torch.where(total == 0, 1.0, total).to(X.dtype)
