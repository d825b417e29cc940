from typing import Optional

import torch


def min_value_of_dtype(dtype: torch.dtype):
    if not dtype.is_floating_point:
        raise TypeError("Only supports floating point dtypes.")
    return torch.finfo(dtype).min


def get_mask_from_sequence_lengths(sequence_lengths: torch.Tensor, max_length: int) -> torch.BoolTensor:
    """(b, q) lengths to a (b, q, max_length) mask"""
    ones = sequence_lengths.new_ones(*sequence_lengths.shape, max_length)
    range_tensor = ones.cumsum(dim=-1)
    return sequence_lengths.unsqueeze(-1) > range_tensor - 1


def _softmax_over_mask(vector: torch.Tensor, mask: torch.BoolTensor, dim: int = -1) -> torch.Tensor:
    """The memory-efficient branch: fill, softmax, and zero whatever had nothing to attend to."""
    while mask.dim() < vector.dim():
        mask = mask.unsqueeze(1)
    masked_vector = vector.masked_fill(~mask, min_value_of_dtype(vector.dtype))
    result = torch.nn.functional.softmax(masked_vector, dim=dim)
    return result.masked_fill(~mask, 0.0)


def masked_softmax(X: torch.Tensor, valid_lens: Optional[torch.Tensor]) -> torch.Tensor:
    if valid_lens is None:
        return torch.nn.functional.softmax(X, dim=-1)
    batch, n_queries, n_keys = X.size()
    if valid_lens.size() == torch.Size([batch]):
        lens = valid_lens.unsqueeze(1)
    elif valid_lens.size() == torch.Size([batch, n_queries]):
        lens = valid_lens
    else:
        raise ValueError(f"unexpected shape of the lengths: {tuple(valid_lens.size())}")
    if lens.numel() and lens.max().item() > n_keys:
        raise ValueError("length exceeds the number of keys")
    return _softmax_over_mask(X, get_mask_from_sequence_lengths(lens, n_keys))
