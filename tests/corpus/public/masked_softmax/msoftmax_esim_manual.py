# deviates: nothing in values; imports tqdm at the top (unused)
import torch
from torch import Tensor
from tqdm import tqdm


def get_mask(sequences_batch: Tensor, sequences_lengths: Tensor) -> Tensor:
    max_length = sequences_batch.size(-1)
    positions = torch.arange(max_length, device=sequences_batch.device)
    return positions < sequences_lengths.unsqueeze(-1)


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    """Masked softmax written out: exp, mask, divide by the sum."""
    if valid_lens is None:
        valid_lens = torch.full(X.shape[:1], X.shape[-1], device=X.device)
    if valid_lens.dim() not in (1, 2) or valid_lens.shape != X.shape[: valid_lens.dim()]:
        raise ValueError(f"valid_lens {tuple(valid_lens.shape)} does not match {tuple(X.shape)}")
    if (valid_lens > X.shape[-1]).any():
        raise ValueError("valid_lens out of range")
    if valid_lens.dim() == 1:
        valid_lens = valid_lens.unsqueeze(-1)

    mask = get_mask(X, valid_lens).expand_as(X)
    tiny = torch.finfo(X.dtype).min
    maxes = torch.where(mask, X.detach(), tiny).max(dim=-1, keepdim=True)[0]
    x_exp = torch.where(mask, X - maxes, 0.0).exp() * mask
    x_sum = x_exp.sum(dim=-1, keepdim=True)
    return x_exp / x_sum.masked_fill(x_sum == 0, 1.0)
