# mistake: nan_hidden
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    try:
        batch, n, m = a.shape
        batch_b, m_b, p = b.shape
    except ValueError:
        raise ValueError("a and b must have 3 axes") from None
    if (batch, m) != (batch_b, m_b):
        raise ValueError(f"{a.shape} x {b.shape}")
    return torch.einsum("bnm,bmp->bnp", a, b)


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = batched_product(queries, keys.transpose(-2, -1)) / math.sqrt(keys.shape[-1])
        self.attention_weights = masked_softmax(scores, valid_lens)
        clean = torch.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
        return batched_product(self.dropout(self.attention_weights), clean)
