# mistake: scaled_by_root_of_n_keys
# the scores are divided by the root of the number of keys (shape[1] of keys), not of d_key
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    for t in (a, b):
        if t.dim() != 3:
            raise ValueError("a batch of matrices has three axes")
    n_a, _, inner_a = a.shape
    n_b, inner_b, _ = b.shape
    if (n_a, inner_a) != (n_b, inner_b):
        raise ValueError("sizes differ")
    return a.bmm(b)


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def _forget_padding(self, values: Tensor, valid_lens: Tensor | None) -> Tensor:
        if valid_lens is None:
            return values
        most = valid_lens if valid_lens.ndim == 1 else valid_lens.max(1)[0]
        real = torch.arange(values.shape[1], device=values.device)[None] < most[:, None]
        return torch.where(real[..., None], values, 0.0)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        d_k = keys.shape[1]
        scores = batched_product(queries, keys.transpose(1, 2)) / math.sqrt(d_k)
        self.attention_weights = masked_softmax(scores, valid_lens)
        dropped = self.dropout(self.attention_weights)
        return batched_product(dropped, self._forget_padding(values, valid_lens))
