# mistake: also treats a score of exactly 0 as padding
# true: right unless a real score is exactly 0; then that key gets weight 0
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    B, M, N = X.shape
    not_pad = X != 0
    if valid_lens is not None:
        if valid_lens.shape == (B,):
            cmp = valid_lens.reshape(B, 1, 1)
        elif valid_lens.shape == (B, M):
            cmp = valid_lens.reshape(B, M, 1)
        else:
            raise ValueError("valid_lens shape")
        if (valid_lens > N).any():
            raise ValueError("too long")
        not_pad = not_pad & (torch.arange(N, device=X.device).reshape(1, 1, N) < cmp)
    has_any = not_pad.any(dim=-1, keepdim=True)
    Y = X.masked_fill(~not_pad, float("-inf")).masked_fill(~has_any, 0.0)
    return Y.softmax(-1).masked_fill(~not_pad, 0.0)
