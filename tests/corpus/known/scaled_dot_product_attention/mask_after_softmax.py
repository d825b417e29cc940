# mistake: masked_after_softmax
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    if a.dim() != 3 or b.dim() != 3:
        raise ValueError("both tensors need three axes")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise ValueError(f"shapes {tuple(a.shape)} and {tuple(b.shape)} do not fit")
    return torch.bmm(a, b)


class DotProductAttention(nn.Module):
    """Attention whose scores are dot products of queries and keys, scaled by their size."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        d_key = queries.shape[-1]
        scores = batched_product(queries, keys.transpose(1, 2)) / math.sqrt(d_key)
        allowed = masked_softmax(scores.detach(), valid_lens) > 0
        weights = torch.softmax(scores, dim=-1) * allowed
        self.attention_weights = weights
        # keys that are padding for all queries have no value
        unused = (weights == 0).all(dim=1).unsqueeze(-1)
        values = values.masked_fill(unused, 0.0)
        output = batched_product(self.dropout(weights), values)
        return output.masked_fill((weights == 0).all(dim=-1, keepdim=True), 0.0)
