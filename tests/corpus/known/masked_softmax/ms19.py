# mistake: uniform_at_length_zero + writes_into_argument
# in words: filler -1e9, no zeros for length 0 + masked_fill_ on X itself
import torch
from torch import Tensor

NEG = -1e9


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    scores = X
    if valid_lens is not None:
        lens = valid_lens
        if lens.shape == X.shape[:1]:
            lens = torch.broadcast_to(lens.unsqueeze(-1), X.shape[:2])
        if lens.shape != X.shape[:2] or bool((lens > X.shape[2]).any()):
            raise ValueError("valid_lens does not fit X")
        future = torch.arange(X.shape[2], device=X.device) >= lens.unsqueeze(-1)
        with torch.no_grad():
            scores.masked_fill_(future, NEG)
    m = scores.max(dim=-1, keepdim=True).values.detach()
    ex = (scores - m).exp()
    return ex / ex.sum(dim=-1, keepdim=True)
