# mistake: not in the catalogue: attention_weights is averaged with the weights of earlier calls of the same shape
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
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.attention_weights = None

    def remember(self, weights: Tensor) -> None:
        old = self.attention_weights
        if old is not None and old.shape == weights.shape:
            weights = (old + weights) / 2
        self.attention_weights = weights.detach()

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = batched_product(queries, keys.transpose(1, 2)) / math.sqrt(queries.shape[-1])
        weights = masked_softmax(scores, valid_lens)
        self.remember(weights)
        if valid_lens is not None:
            lens = valid_lens if valid_lens.dim() == 1 else valid_lens.amax(dim=1)
            hidden = torch.arange(keys.shape[1]) >= lens[:, None]
            values = values.masked_fill(hidden[:, :, None], 0)
        return batched_product(self.dropout(weights), values)
