# 点积注意力:没有任何查询用到的键,其值先换成 0
import math

import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    if a.ndim != 3 or b.ndim != 3:
        raise ValueError("both tensors need three axes")
    if a.size(0) != b.size(0):
        raise ValueError("different batches")
    if a.size(2) != b.size(1):
        raise ValueError("inner sizes differ")
    return torch.bmm(a, b)


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.rate = float(dropout)
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        d_key = keys.size(-1)
        w = masked_softmax(batched_product(queries, keys.mT) / math.sqrt(d_key), valid_lens)
        self.attention_weights = w
        if valid_lens is not None:
            used = w.detach().ne(0).any(dim=1)
            values = torch.where(used.unsqueeze(-1), values, torch.zeros_like(values))
        return batched_product(F.dropout(w, self.rate, training=self.training), values)
