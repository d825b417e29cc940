import torch
from torch import Tensor, nn


def sequence_mask(rows: Tensor, lens: Tensor) -> Tensor:
    steps = torch.arange(rows.size(1), device=rows.device)
    return steps[None, :] < lens[:, None]


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return nn.functional.softmax(X, dim=-1)
    b, q, k = X.shape
    if valid_lens.dim() == 1 and valid_lens.numel() == b:
        lens = torch.repeat_interleave(valid_lens, q)
    elif valid_lens.dim() == 2 and list(valid_lens.shape) == [b, q]:
        lens = valid_lens.reshape(-1)
    else:
        raise ValueError("strange shape of valid_lens")
    if bool((lens > k).any()):
        raise ValueError("length too large")
    flat = X.reshape(b * q, k)
    busy = lens > 0  # the other rows have nothing to attend to and stay zeros
    chosen = flat[busy]
    chosen = torch.where(sequence_mask(chosen, lens[busy]), chosen, float("-inf"))
    out = torch.zeros_like(flat)
    out[busy] = nn.functional.softmax(chosen, dim=-1)
    return out.reshape(b, q, k)
