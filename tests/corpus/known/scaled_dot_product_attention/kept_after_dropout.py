# mistake: kept_after_dropout
# attention_weights holds the weights after dropout, so in training it shows dropped and enlarged weights
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    if a.dim() != 3 or b.dim() != 3:
        raise ValueError("three axes expected")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise ValueError("shapes do not fit")
    return torch.bmm(a, b)


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        d = queries.shape[-1]
        scores = batched_product(queries / math.sqrt(d), keys.transpose(1, 2))
        self.attention_weights = self.dropout(masked_softmax(scores, valid_lens))
        if valid_lens is not None:
            longest = valid_lens if valid_lens.dim() == 1 else valid_lens.amax(1)
            unused = torch.arange(keys.shape[1], device=keys.device) >= longest[:, None]
            values = values.masked_fill(unused[:, :, None], 0.0)
        return batched_product(self.attention_weights, values)
