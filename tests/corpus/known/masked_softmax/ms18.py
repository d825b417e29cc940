# mistake: off_by_one + one_length_for_all_queries
# in words: keys counted from 1 wrongly so one too many is valid + the first query's length stands for all
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    if valid_lens.shape != X.shape[:1] and valid_lens.shape != X.shape[:2]:
        raise ValueError("wrong shape of valid_lens")
    if (valid_lens > X.shape[-1]).any():
        raise ValueError("wrong value in valid_lens")
    if valid_lens.dim() == 2:
        valid_lens = valid_lens[:, 0]
    steps = torch.arange(X.shape[-1], device=X.device)
    outside = ~(steps[None, :] <= valid_lens[:, None])
    outside |= (valid_lens == 0)[:, None]
    bias = torch.zeros(outside.shape, dtype=X.dtype, device=X.device).masked_fill(outside, float("-inf"))
    probs = torch.softmax(X.masked_fill(outside.unsqueeze(1), 0) + bias.unsqueeze(1), dim=-1)
    return torch.where(outside.unsqueeze(1), torch.zeros_like(probs), probs)
