# broken: "The score of a padded key has no effect, however large it is": the weights are right, but a padded score of 1e4 makes the gradient of X nan.
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    batch, n_queries, n_keys = X.shape
    if valid_lens.shape not in ((batch,), (batch, n_queries)):
        raise ValueError("valid_lens has a wrong shape")
    if (valid_lens > n_keys).any():
        raise ValueError("a length is greater than n_keys")
    lens = valid_lens[:, None, None] if valid_lens.dim() == 1 else valid_lens[:, :, None]
    valid = torch.arange(n_keys, device=X.device).double() < lens.double()
    valid = valid.expand(X.shape)
    top = X.detach().masked_fill(~valid, torch.finfo(X.dtype).min).amax(dim=-1, keepdim=True)
    top = top.masked_fill(~valid.any(dim=-1, keepdim=True), 0.0)
    powers = torch.where(valid, torch.exp(X - top), 0.0)
    total = powers.sum(dim=-1, keepdim=True)
    return powers / torch.where(total > 0, total, 1.0)
