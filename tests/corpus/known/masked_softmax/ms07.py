# mistake: polarity_inverted
# in words: the real keys are hidden and the padding is kept
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    batch, n_queries, n_keys = X.shape
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    if valid_lens.shape == (batch,):
        valid_lens = valid_lens.unsqueeze(1).expand(-1, n_queries)
    elif valid_lens.shape != (batch, n_queries):
        raise ValueError("valid_lens does not fit X")
    if (valid_lens > n_keys).any():
        raise ValueError("a length exceeds n_keys")
    steps = torch.arange(n_keys, device=X.device)
    mask = steps < valid_lens.unsqueeze(-1)
    weights = torch.softmax(X.masked_fill(mask, -torch.inf), dim=-1)
    return weights.nan_to_num(0.0)
