# broken: "A batch of size 1 is not repeated": batched_product repeats it, by matmul
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    """Return the matrix product of each item of a with the same item of b."""
    if a.dim() != 3 or b.dim() != 3:
        raise ValueError("both tensors need three axes")
    if (a.shape[0] != b.shape[0] and 1 not in (a.shape[0], b.shape[0])) or a.shape[2] != b.shape[1]:
        raise ValueError(f"shapes {tuple(a.shape)} and {tuple(b.shape)} do not fit")
    return torch.matmul(a, b)


class DotProductAttention(nn.Module):
    """Attention whose scores are dot products of queries and keys, scaled by their size."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scale = math.sqrt(keys.shape[-1])
        scores = batched_product(queries, keys.transpose(1, 2)) / scale
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach()
        if valid_lens is not None:
            longest = valid_lens if valid_lens.dim() == 1 else valid_lens.amax(dim=1)
            places = torch.arange(keys.shape[1], device=keys.device)
            padding = places >= longest.unsqueeze(1)
            values = values.masked_fill(padding.unsqueeze(2), 0.0)
        return batched_product(self.dropout(weights), values)
