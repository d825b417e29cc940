# broken: "a valid_lens of any other shape is refused": (batch, 1) is accepted for several queries, and repeated
import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    batch, n_queries, n_keys = X.shape
    if valid_lens is None:
        return torch.softmax(X, dim=-1)
    lens = valid_lens.detach().to(torch.float64)
    if lens.shape == (batch,):
        lens = lens[:, None].expand(batch, n_queries)
    elif lens.shape == (batch, 1):
        lens = lens.expand(batch, n_queries)
    elif lens.shape != (batch, n_queries):
        raise ValueError(f"valid_lens has the shape {tuple(valid_lens.shape)}")
    if (lens > n_keys).any():
        raise ValueError(f"a length is greater than {n_keys}")
    positions = torch.arange(n_keys, device=X.device)
    valid = positions < lens[:, :, None]
    empty = ~valid.any(dim=-1, keepdim=True)
    scores = X.masked_fill(~valid, float("-inf")).masked_fill(empty, 0.0)
    return torch.softmax(scores, dim=-1).masked_fill(~valid, 0.0)
