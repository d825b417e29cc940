# mistake: finite_filler
# padded scores are replaced by -1e6, so for valid scores of about -1e7 the padding gets the weight
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    b, q, k = X.shape
    if valid_lens.shape not in ((b,), (b, q)):
        raise ValueError(f"valid_lens has shape {tuple(valid_lens.shape)}")
    if (valid_lens > k).any():
        raise ValueError("a length exceeds the number of keys")
    if valid_lens.dim() == 1:
        valid_lens = valid_lens[:, None]
    valid = torch.arange(k, device=X.device) < valid_lens[:, :, None]
    weights = torch.softmax(X.masked_fill(~valid, -1e6), dim=-1)
    return weights * (valid_lens > 0)[:, :, None]
