import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    b, q, k = X.shape
    if valid_lens is None:
        valid_lens = torch.full((b,), k, device=X.device)
    if valid_lens.shape == (b,):
        valid_lens = valid_lens.unsqueeze(1).expand(b, q)
    if valid_lens.shape != (b, q):
        raise ValueError("valid_lens must be (batch,) or (batch, n_queries)")
    if torch.any(valid_lens > k):
        raise ValueError("length exceeds n_keys")
    keep = torch.arange(k, device=X.device).view(1, 1, k) < valid_lens.unsqueeze(2)
    scores = X.masked_fill(~keep, float("-inf"))
    top = scores.amax(dim=-1, keepdim=True)
    top = top.masked_fill(top == float("-inf"), 0.0)
    e = (scores - top.detach()).exp()
    z = e.sum(dim=-1, keepdim=True)
    return e / z.masked_fill(z == 0, 1.0)
