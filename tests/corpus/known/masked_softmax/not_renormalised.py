# mistake: masked_after_softmax
# the padded weights are set to 0 after a softmax over all keys, so the remaining weights sum to less than 1 and depend on padded scores
import torch
from torch import Tensor


def sequence_mask(lengths: Tensor, maxlen: int) -> Tensor:
    steps = torch.arange(maxlen, device=lengths.device)
    return steps < lengths.unsqueeze(-1)


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    weights = torch.softmax(X, dim=-1)
    if valid_lens is None:
        return weights
    if valid_lens.shape != X.shape[:1] and valid_lens.shape != X.shape[:2]:
        raise ValueError("unexpected shape of valid_lens")
    if (valid_lens > X.shape[-1]).any():
        raise ValueError("valid_lens beyond n_keys")
    mask = sequence_mask(valid_lens, X.shape[-1])
    if mask.dim() == 2:
        mask = mask.unsqueeze(1)
    return weights.masked_fill(~mask, 0.0)
