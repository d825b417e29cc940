# right: scores by torch.baddbmm with alpha, padding by torch.where, batched product by bmm
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    """a[i] @ b[i] for each i."""
    if a.dim() != 3 or b.dim() != 3:
        raise ValueError("both tensors need three axes")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise ValueError(f"cannot multiply {tuple(a.shape)} and {tuple(b.shape)}")
    return torch.bmm(a, b)


class DotProductAttention(nn.Module):
    """Scores by baddbmm, whose alpha is the scale."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        nothing = queries.new_zeros(1, 1, 1)
        alpha = 1 / math.sqrt(queries.shape[2])
        scores = torch.baddbmm(nothing, queries, keys.mT, beta=0, alpha=alpha)
        self.attention_weights = masked_softmax(scores, valid_lens)
        if valid_lens is not None:
            positions = torch.arange(values.shape[1], device=values.device)
            lens = valid_lens if valid_lens.dim() == 2 else valid_lens.unsqueeze(1)
            seen = positions < lens.amax(dim=1, keepdim=True)
            values = torch.where(seen[..., None], values, 0.0)
        return batched_product(self.dropout(self.attention_weights), values)
