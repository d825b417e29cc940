# mistake: softmax_twice
import torch
from torch import Tensor, nn


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    batch, n_queries, n_keys = X.size()
    softmax = nn.Softmax(dim=2)
    if valid_lens is None:
        lens = torch.full((batch, n_queries), n_keys, device=X.device)
    elif list(valid_lens.shape) == [batch]:
        lens = valid_lens.unsqueeze(1).expand(batch, n_queries)
    elif list(valid_lens.shape) == [batch, n_queries]:
        lens = valid_lens
    else:
        raise ValueError("valid_lens has the wrong shape")
    if lens.numel() and lens.max() > n_keys:
        raise ValueError("valid_lens is too large")
    real = torch.arange(n_keys, device=X.device)[None, None] < lens[:, :, None]
    low = torch.finfo(X.dtype).min
    probs = softmax(X.masked_fill(real.logical_not(), low))
    probs = softmax(probs.masked_fill(real.logical_not(), low))
    return torch.where(real, probs, torch.zeros_like(probs))
