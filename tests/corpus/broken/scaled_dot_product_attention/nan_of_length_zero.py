# broken: "If a key is padded for every query of its batch item, its value has no effect": if the whole item has length 0, a nan in its first value reaches the output
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    if a.dim() != 3 or b.dim() != 3 or a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise ValueError(f"shapes {tuple(a.shape)} and {tuple(b.shape)} do not fit")
    return torch.bmm(a, b)


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        d_key = queries.shape[-1]
        scores = batched_product(queries, keys.transpose(1, 2)) / math.sqrt(d_key)
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach()
        if valid_lens is not None:
            longest = valid_lens if valid_lens.dim() == 1 else valid_lens.amax(dim=1)
            positions = torch.arange(keys.shape[1], device=keys.device)
            padded = positions >= longest.clamp(min=1)[:, None]
            values = values.masked_fill(padded[:, :, None], 0.0)
        return batched_product(self.dropout(weights), values)
