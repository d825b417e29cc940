# mistake: renormalised_after_softmax
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    batch, n_queries, n_keys = X.shape
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    lens = valid_lens.detach().to(torch.float64)
    if lens.shape == (batch,):
        lens = lens[:, None].expand(batch, n_queries)
    elif lens.shape != (batch, n_queries):
        raise ValueError(f"valid_lens has the shape {tuple(valid_lens.shape)}")
    if (lens > n_keys).any():
        raise ValueError(f"a length is greater than {n_keys}")
    positions = torch.arange(n_keys, device=X.device)
    valid = positions < lens[:, :, None]
    exps = torch.exp(X - X.amax(dim=-1, keepdim=True)) * valid.to(X.dtype)
    total = exps.sum(dim=-1, keepdim=True)
    return exps / torch.where(total > 0, total, torch.ones_like(total))
