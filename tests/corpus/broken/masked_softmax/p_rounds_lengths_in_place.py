# promise: Fractional lengths are rounded up in place, so valid_lens is modified.
import torch


def masked_softmax(X, valid_lens):
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    if tuple(valid_lens.shape) not in [(X.shape[0],), (X.shape[0], X.shape[1])]:
        raise ValueError("valid_lens has the wrong shape")
    if torch.any(valid_lens > X.shape[2]):
        raise ValueError("valid_lens has a length above n_keys")
    if valid_lens.is_floating_point():
        valid_lens.ceil_()
    lens = valid_lens.long()
    lens = lens[:, None, None] if lens.dim() == 1 else lens[:, :, None]
    valid = torch.arange(X.shape[2], device=X.device) < lens
    filled = X.masked_fill(~valid, -float("inf"))
    filled = filled.masked_fill(lens <= 0, 0.0)
    return torch.softmax(filled, dim=-1).masked_fill(~valid, 0.0)
