# mistake: masked_after_softmax
# seen: pytorch-image-models pull 2236 (eva.py). Mistake: the mask is applied to the weights after the softmax, so padding still takes part in the denominator.
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    batch, n_queries, n_keys = X.shape
    if valid_lens.shape == (batch,):
        lens = valid_lens.reshape(batch, 1, 1)
    elif valid_lens.shape == (batch, n_queries):
        lens = valid_lens.reshape(batch, n_queries, 1)
    else:
        raise ValueError(f"valid_lens has the shape {tuple(valid_lens.shape)}")
    lens = lens.to(device=X.device, dtype=torch.float64)
    if not bool((lens <= n_keys).all()):
        raise ValueError("a length is greater than the number of keys")
    keep = torch.arange(n_keys, device=X.device) < lens
    keep = keep.expand(X.shape)
    return torch.softmax(X, dim=-1).masked_fill(~keep, 0.0)
