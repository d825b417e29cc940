# mistake: uniform_at_length_zero
# in words: smallest finite number as the filler, a row of length 0 comes out uniform
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    """Softmax that ignores the padding."""
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    lens = {1: lambda v: v[:, None, None], 2: lambda v: v[:, :, None]}.get(valid_lens.dim())
    if lens is None or valid_lens.shape != X.shape[: valid_lens.dim()]:
        raise ValueError("unexpected shape of valid_lens")
    lens = lens(valid_lens)
    if (lens > X.shape[-1]).any():
        raise ValueError("valid length beyond the keys")
    lowest = torch.finfo(X.dtype).min
    is_pad = ~(torch.arange(X.shape[-1], device=X.device) < lens)
    return X.masked_fill(is_pad, lowest).softmax(dim=-1)
