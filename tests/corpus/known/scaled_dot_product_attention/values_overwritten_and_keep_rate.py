# mistake: rate_of_keeping + writes_into_arguments
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
    """dropout: see nn.Dropout."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(1 - dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = batched_product(queries, keys.transpose(1, 2)) / math.sqrt(queries.shape[-1])
        self.attention_weights = masked_softmax(scores, valid_lens)
        if valid_lens is not None:
            longest = valid_lens if valid_lens.ndim == 1 else valid_lens.amax(1)
            padding = torch.arange(values.shape[1]) >= longest[:, None]
            values.data[padding] = 0
        return batched_product(self.dropout(self.attention_weights), values)
