# mistake: dropout_on_the_output
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
    """Scaled dot-product attention."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        d_key = queries.shape[-1]
        scores = batched_product(queries, keys.transpose(1, 2)) / math.sqrt(d_key)
        self.attention_weights = masked_softmax(scores, valid_lens)
        if valid_lens is not None:
            longest = valid_lens if valid_lens.dim() == 1 else valid_lens.amax(dim=1)
            padded = torch.arange(keys.shape[1], device=keys.device) >= longest[:, None]
            values = values.masked_fill(padded[:, :, None], 0)
        return self.dropout(batched_product(self.attention_weights, values))
