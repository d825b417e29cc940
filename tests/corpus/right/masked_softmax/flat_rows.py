# note: flattens to rows, repeats the lengths per row with repeat_interleave, and runs torch's softmax on rows whose padding is -inf only if they are not empty
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, -1)
    n_b, n_q, n_k = X.shape
    sizes = list(valid_lens.shape)
    if sizes == [n_b]:
        per_row = torch.repeat_interleave(valid_lens, n_q)
    elif sizes == [n_b, n_q]:
        per_row = valid_lens.flatten()
    else:
        raise ValueError("valid_lens must be None, (batch,) or (batch, n_queries)")
    if not bool(torch.all(per_row <= n_k)):
        raise ValueError("lengths must not be greater than n_keys")
    padded = torch.arange(n_k, device=X.device).unsqueeze(0).ge(per_row.unsqueeze(1))
    nothing = padded.all(1, keepdim=True)
    fill = torch.zeros_like(padded, dtype=X.dtype).masked_fill(~nothing.expand_as(padded), -torch.inf)
    rows = torch.where(padded, fill, X.flatten(0, 1))
    keep = torch.logical_not(padded)
    return torch.where(keep, rows.softmax(1), torch.zeros_like(rows)).unflatten(0, (n_b, n_q))
