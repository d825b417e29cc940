# mistake: lengths_without_effect
# in words: the masked scores are computed and thrown away
import torch
from torch import Tensor


def hide_padding(scores: Tensor, lens: Tensor) -> Tensor:
    """Set the scores beyond the lengths to -inf."""
    cols = torch.arange(scores.size(-1), device=scores.device)
    torch.masked_fill(scores, cols >= lens, float("-inf"))
    return scores


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, -1)
    if valid_lens.shape == X.shape[:1]:
        lens = valid_lens[:, None, None]
    elif valid_lens.shape == X.shape[:2]:
        lens = valid_lens[:, :, None]
    else:
        raise ValueError("valid_lens: expected (batch,) or (batch, n_queries)")
    if lens.gt(X.size(-1)).any():
        raise ValueError("valid_lens: longer than n_keys")
    some = lens > 0
    weights = torch.softmax(hide_padding(X, lens), dim=-1)
    return weights.masked_fill(~some, 0.0)
