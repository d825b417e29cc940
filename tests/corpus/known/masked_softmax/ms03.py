# mistake: masked_after_softmax
# in words: weights are cut off after the softmax and no longer sum to 1
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    weights = torch.nn.functional.softmax(X, dim=2)
    if valid_lens is None:
        return weights
    batch, n_queries, n_keys = X.size()
    lens = valid_lens
    if lens.ndim == 1:
        lens = lens.unsqueeze(1)
        if lens.size(0) != batch:
            raise ValueError("one length per batch item")
        lens = lens.repeat(1, n_queries)
    if lens.size() != (batch, n_queries):
        raise ValueError("one length per query")
    if bool((lens > n_keys).any()):
        raise ValueError("length > n_keys")
    cols = torch.arange(n_keys, device=X.device)
    padding = cols.expand(batch, n_queries, n_keys) >= lens.unsqueeze(2)
    return weights.masked_fill(padding, 0.0)
