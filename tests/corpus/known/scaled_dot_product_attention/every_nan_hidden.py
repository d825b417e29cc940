# mistake: nan_hidden
# nan_to_num is applied to all values, so a nan in the value of a valid key is hidden instead of making the output nan
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    if a.ndim != 3 or b.ndim != 3 or len(a) != len(b) or a.size(2) != b.size(1):
        raise ValueError(f"cannot multiply {tuple(a.shape)} and {tuple(b.shape)}")
    return torch.einsum("bnm,bmp->bnp", a, b)


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = torch.einsum("bqd,bkd->bqk", queries, keys) / math.sqrt(keys.size(2))
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights
        clean = torch.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
        return batched_product(self.dropout(weights), clean)
