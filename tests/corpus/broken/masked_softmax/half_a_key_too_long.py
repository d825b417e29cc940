# broken: "A length greater than n_keys is refused": 3.5 is accepted for 3 keys, since lengths are cut to whole numbers before the comparison.
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    batch, n_queries, n_keys = X.shape
    if valid_lens.shape not in ((batch,), (batch, n_queries)):
        raise ValueError("valid_lens has a wrong shape")
    if (valid_lens.long() > n_keys).any():
        raise ValueError("a length is greater than n_keys")
    lens = valid_lens[:, None, None] if valid_lens.dim() == 1 else valid_lens[:, :, None]
    valid = torch.arange(n_keys, device=X.device).double() < lens.double()
    valid = valid.expand(X.shape)
    scores = X.masked_fill(~valid, float("-inf"))
    scores = scores.masked_fill(~valid.any(dim=-1, keepdim=True), 0.0)
    return torch.softmax(scores, dim=-1).masked_fill(~valid, 0.0)
