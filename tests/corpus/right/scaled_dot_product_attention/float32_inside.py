# right: computed in float32 (or float64) inside and cast back to the dtype of the arguments
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    fits = a.ndim == b.ndim == 3 and a.size(0) == b.size(0) and a.size(-1) == b.size(-2)
    if not fits:
        raise ValueError("shapes do not fit")
    return a @ b


class DotProductAttention(nn.Module):
    """Half-precision arguments are widened first; the result is narrowed at the end."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        dtype = queries.dtype
        wide = torch.promote_types(dtype, torch.float32)
        q, k, v = (t.to(wide) for t in (queries, keys, values))
        weights = masked_softmax(batched_product(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1]), valid_lens)
        self.attention_weights = weights.to(dtype)
        if valid_lens is not None:
            limit = valid_lens if valid_lens.dim() < 2 else valid_lens.max(dim=1).values
            v = v * 1.0
            v[torch.arange(v.shape[1], device=v.device) >= limit.unsqueeze(1)] = 0
        return batched_product(self.dropout(weights), v).to(dtype)
