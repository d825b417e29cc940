# mistake: scaled_by_root_of_n_keys
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    if a.ndim != 3 or b.ndim != 3:
        raise ValueError("a and b need three axes")
    (n_a, _, m_a), (n_b, m_b, _) = a.shape, b.shape
    if n_a != n_b or m_a != m_b:
        raise ValueError("a and b do not fit")
    return torch.bmm(a, b)


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None) -> Tensor:
        # shape of keys: (batch, n_keys, d_key)
        d = keys.shape[1]
        scores = batched_product(queries, keys.transpose(1, 2)) / math.sqrt(d)
        attn = masked_softmax(scores, valid_lens)
        self.attention_weights = attn
        # padded values can be nan
        nobody = attn.detach().sum(dim=1) == 0
        values = values.masked_fill(nobody.unsqueeze(2), 0.0)
        return batched_product(self.dropout(attn), values)
