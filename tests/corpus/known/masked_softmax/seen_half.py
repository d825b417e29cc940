# mistake: finite_filler
# seen: NVIDIA/apex issue 1105 (also bentrevett/pytorch-seq2seq issue 191). Mistake: the mask value -1e10 is a constant that float16 cannot hold, so half precision scores raise an error.
import torch
from torch import Tensor

MASKED = -1e10


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    if valid_lens is None:
        return torch.nn.functional.softmax(X, dim=-1)

    n_batch, n_queries, n_keys = X.size()
    if valid_lens.size() == torch.Size([n_batch]):
        per_query = valid_lens.unsqueeze(1).expand(n_batch, n_queries)
    elif valid_lens.size() == torch.Size([n_batch, n_queries]):
        per_query = valid_lens
    else:
        raise ValueError("lengths are needed per batch item or per query")
    per_query = per_query.to(X.device)
    if (per_query > n_keys).any():
        raise ValueError("too long")

    ticks = torch.arange(n_keys, device=X.device)
    if per_query.is_floating_point():
        per_query = per_query.ceil().long()
    padding = ticks.view(1, 1, -1) >= per_query.unsqueeze(2)
    empty = per_query.unsqueeze(2) <= 0

    scores = X.masked_fill(padding, MASKED).masked_fill(empty, 0)
    weights = torch.nn.functional.softmax(scores, dim=-1)
    return weights.masked_fill(padding, 0)
