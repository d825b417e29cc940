# mistake: renormalised_after_softmax
# seen: deepmodeling/deepmd-kit pull 5715, review of segment.py. Mistake: the largest valid score is subtracted from padded scores too; if one of them is far larger, its exponential is inf, and inf times the mask 0 is nan.
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    batch, n_queries, n_keys = X.shape
    j = torch.arange(n_keys, device=X.device)
    if valid_lens is None:
        ok = torch.ones_like(X, dtype=torch.bool)
    else:
        if valid_lens.ndim not in (1, 2) or valid_lens.shape != X.shape[: valid_lens.ndim]:
            raise ValueError("shape of valid_lens does not fit X")
        if not torch.all(valid_lens <= n_keys):
            raise ValueError("length greater than n_keys")
        lens = valid_lens.to(X.device).double()
        lens = lens.reshape(batch, -1, 1)
        ok = (j < lens).expand(batch, n_queries, n_keys)

    wide = X.float() if X.dtype in (torch.float16, torch.bfloat16) else X
    hidden = wide.masked_fill(~ok, float("-inf"))
    top = hidden.detach().amax(dim=-1, keepdim=True)
    top = top.masked_fill(top == float("-inf"), 0.0)
    e = torch.exp(wide - top) * ok
    total = e.sum(dim=-1, keepdim=True)
    total = total.masked_fill(~ok.any(dim=-1, keepdim=True), 1.0)
    return (e / total).to(X.dtype)
