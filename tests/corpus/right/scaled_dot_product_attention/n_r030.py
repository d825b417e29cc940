# style: unusual
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    match (a.shape, b.shape):
        case ((batch_a, _, m_a), (batch_b, m_b, _)) if batch_a == batch_b and m_a == m_b:
            return torch.einsum("bnm,bmp->bnp", a, b)
        case _:
            raise ValueError(f"cannot multiply {tuple(a.shape)} and {tuple(b.shape)}")


class DotProductAttention(nn.Module):
    """softmax(q k^T / sqrt(d)) v, where values of padding are wiped out before the product"""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.attention_weights: Tensor | None = None

    @staticmethod
    def _unused(values: Tensor, n_queries: int, valid_lens: Tensor) -> Tensor:
        """(batch, n_keys, 1), True for keys that are padding for all queries"""
        longest = valid_lens if valid_lens.dim() == 1 else valid_lens.amax(dim=1)
        place = torch.arange(values.shape[1], device=values.device)
        return (place >= longest[:, None]).unsqueeze(-1)

    def forward(self, queries, keys, values, valid_lens=None):
        d_key = queries.shape[-1]
        scores = batched_product(queries, keys.transpose(1, 2)) / math.sqrt(d_key)
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach()
        if valid_lens is not None:
            values = values.masked_fill(self._unused(values, queries.shape[1], valid_lens), 0.0)
        return batched_product(self.drop(weights), values)
