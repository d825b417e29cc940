# mistake: one_length_for_all_queries
# in words: of lengths per query only the largest is used
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    if valid_lens.shape != X.shape[:1] and valid_lens.shape != X.shape[:2]:
        raise ValueError("valid_lens must match the batch (and the queries)")
    if torch.any(valid_lens > X.shape[2]):
        raise ValueError("valid_lens must be <= n_keys")
    per_item = valid_lens.reshape(X.shape[0], -1).amax(dim=1)
    valid = torch.arange(X.shape[2], device=X.device) < per_item[:, None]
    scores = X.masked_fill(~valid[:, None, :], -float("inf"))
    top = scores.amax(dim=-1, keepdim=True)
    top = top.masked_fill(top == -float("inf"), 0.0)
    e = torch.exp(scores - top)
    return e / e.sum(dim=-1, keepdim=True).clamp(min=1e-30)
