# mistake: padded_scores_near_zero
# in words: scores are multiplied by the mask before the softmax
import torch
from torch import Tensor


def _lengths(X, valid_lens):
    if valid_lens.dim() == 1 and valid_lens.shape[0] == X.shape[0]:
        valid_lens = valid_lens[:, None].expand(X.shape[0], X.shape[1])
    if valid_lens.shape != X.shape[:2]:
        raise ValueError("valid_lens must be (batch,) or (batch, n_queries)")
    if (valid_lens > X.shape[2]).any():
        raise ValueError("length greater than n_keys")
    return valid_lens


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    lens = _lengths(X, valid_lens)
    keep = torch.arange(X.shape[-1], device=X.device) < lens[..., None]
    scores = torch.einsum("bqk,bqk->bqk", X, keep.to(X.dtype))
    out = torch.softmax(scores, dim=-1)
    # nothing to attend to: zeros
    return out * (lens > 0).unsqueeze(-1).to(X.dtype)
