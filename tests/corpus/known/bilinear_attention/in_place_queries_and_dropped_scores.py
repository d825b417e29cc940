# mistake: dropout_before_softmax
# (and the queries of the caller are divided in place by sqrt(d_key), which is in no catalogue)
import math

import torch
from torch import Tensor, nn

from masked_softmax import masked_softmax


class BilinearAttention(nn.Module):
    """score = (q / sqrt(d_key)) . M k"""

    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.rand(d_query, d_key) - 0.5)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        with torch.no_grad():
            queries /= math.sqrt(keys.shape[-1])
        scores = torch.bmm(queries @ self.M, keys.transpose(1, 2))
        self.attention_weights = masked_softmax(self.dropout(scores), valid_lens)
        return torch.bmm(self.attention_weights, values)
