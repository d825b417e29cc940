# mistake: length_zero_as_one
# true: a row of length 0 puts weight 1 on key 0; everything else is right
import torch
from torch import Tensor


def _mask(lens, n_queries, n_keys):
    lens = lens.clamp(min=1)
    if lens.dim() == 1:
        lens = lens.unsqueeze(1).expand(-1, n_queries)
    return torch.arange(n_keys, device=lens.device)[None, None] < lens.unsqueeze(2)


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    b, q, k = X.size()
    if list(valid_lens.shape) not in ([b], [b, q]):
        raise ValueError("wrong valid_lens")
    if valid_lens.gt(k).any():
        raise ValueError("a length is greater than n_keys")
    m = _mask(valid_lens, q, k)
    logits = X.masked_fill(~m, float("-inf"))
    shifted = logits - logits.amax(-1, keepdim=True).detach()
    e = shifted.exp()
    return e / e.sum(-1, keepdim=True)
