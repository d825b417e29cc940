# promise: key j is valid if j is less than the length; lengths may be floats (2.5 is cut to 2, so key 2 is lost)
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=2)
    batch, n_queries, n_keys = X.shape
    if (valid_lens > n_keys).any():
        raise ValueError("length > n_keys")
    lens = valid_lens.long()
    if lens.shape == (batch,):
        lens = lens.view(-1, 1, 1)
    elif lens.shape == (batch, n_queries):
        lens = lens.unsqueeze(-1)
    else:
        raise ValueError("shape of valid_lens")
    mask = (torch.arange(n_keys, device=X.device) >= lens).expand(X.shape)
    dead = mask.all(2, keepdim=True)
    out = X.masked_fill(mask, float("-inf")).masked_fill(dead, 0.0).softmax(2)
    return out.masked_fill(mask, 0.0)
