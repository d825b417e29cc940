import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    b, q, n = X.shape
    keep = X.new_ones((b, q, n), dtype=torch.bool)
    if valid_lens is not None:
        shapes = {(b,): (b, 1, 1), (b, q): (b, q, 1)}
        if tuple(valid_lens.shape) not in shapes:
            raise ValueError(f"valid_lens: {tuple(valid_lens.shape)} is none of {list(shapes)}")
        if (valid_lens > n).any().item():
            raise ValueError("valid_lens > n_keys")
        keep = keep & (torch.arange(n, device=X.device) < valid_lens.reshape(shapes[tuple(valid_lens.shape)]))
    out = torch.zeros_like(X, memory_format=torch.contiguous_format)
    rows = keep.any(-1)                       # rows that have something to attend to
    logits = X[rows].masked_fill(~keep[rows], -torch.inf)
    return out.masked_scatter(rows[..., None].expand(b, q, n), torch.softmax(logits, dim=-1))
