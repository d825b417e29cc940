# promise: a length greater than n_keys raises ValueError (checked for one length per item, not per query)
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.nn.functional.softmax(X, dim=-1)
    n_keys = X.shape[-1]
    if valid_lens.dim() == 1:
        if valid_lens.shape[0] != X.shape[0]:
            raise ValueError("one length per batch item, please")
        if torch.any(valid_lens > n_keys):
            raise ValueError("length greater than n_keys")
        valid_lens = valid_lens.unsqueeze(1).expand(X.shape[:2])
    elif valid_lens.shape != X.shape[:2]:
        raise ValueError("one length per query, please")
    valid = torch.arange(n_keys, device=X.device) < valid_lens.unsqueeze(-1)
    logits = torch.where(valid, X, -torch.inf)
    logits = torch.where(valid.any(-1, keepdim=True), logits, 0.0)
    return torch.softmax(logits, -1) * valid
