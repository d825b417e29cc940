# promise: Positions are counted in the dtype of X, so a bfloat16 X with more than 256 keys gets wrong masks.
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    if valid_lens.shape != X.shape[:1] and valid_lens.shape != X.shape[:2]:
        raise ValueError("valid_lens must be (batch,) or (batch, n_queries)")
    if (valid_lens > X.shape[-1]).any():
        raise ValueError("a length is greater than n_keys")
    lens = valid_lens.reshape(X.shape[0], -1, 1)
    place = torch.arange(X.shape[-1], device=X.device).to(X.dtype)
    pad = place >= lens
    empty = pad.all(dim=-1, keepdim=True)
    scores = X.masked_fill(pad, float("-inf")).masked_fill(empty, 0.0)
    return torch.softmax(scores, dim=-1).masked_fill(pad, 0.0)
