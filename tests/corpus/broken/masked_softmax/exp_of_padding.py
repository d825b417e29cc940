# broken: "The score of a padded key has no effect, however large it is": the weights are right, but a padded score far above the others (100, say) makes the gradient nan
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    """Return the softmax over the keys, with weight 0 for padded keys."""
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    batch, n_queries, n_keys = X.shape
    if valid_lens.shape == (batch,):
        lens = valid_lens[:, None, None]
    elif valid_lens.shape == (batch, n_queries):
        lens = valid_lens[:, :, None]
    else:
        raise ValueError(f"valid_lens has the shape {tuple(valid_lens.shape)}")
    if (valid_lens > n_keys).any():
        raise ValueError("a length is greater than n_keys")
    lens = lens.to(torch.float64)
    valid = torch.arange(n_keys, device=X.device) < lens
    valid = valid.expand(batch, n_queries, n_keys)
    some = valid.any(dim=-1, keepdim=True)
    largest = X.masked_fill(~valid, float("-inf")).amax(dim=-1, keepdim=True)
    largest = largest.masked_fill(~some, 0.0).detach()
    raised = torch.where(valid, torch.exp(X - largest), 0.0)
    total = raised.sum(dim=-1, keepdim=True) + (~some).to(X.dtype)
    return raised / total
