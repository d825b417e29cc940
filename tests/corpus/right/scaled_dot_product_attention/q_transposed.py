import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    """The rule (A B)^T = B^T A^T, after the checks."""
    if a.dim() != 3 or b.dim() != 3:
        raise ValueError("both tensors need three axes")
    if a.size(0) != b.size(0):
        raise ValueError(f"batches of {a.size(0)} and {b.size(0)}")
    if a.size(2) != b.size(1):
        raise ValueError(f"inner sizes {a.size(2)} and {b.size(1)}")
    return torch.bmm(b.transpose(1, 2), a.transpose(1, 2)).transpose(1, 2)


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        by_key = batched_product(keys, queries.mT) / math.sqrt(keys.size(2))
        self.attention_weights = masked_softmax(by_key.mT, valid_lens)
        # a key that no query gives any weight cannot matter, whatever its value is
        ignored = (self.attention_weights == 0).all(dim=1)
        values = values.masked_fill(ignored.unsqueeze(2), 0)
        return batched_product(values.mT, self.dropout(self.attention_weights).mT).mT
