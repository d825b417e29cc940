# mistake: other_parameters
# M is an nn.Linear layer, so the parameter is called M.weight and has the shape (d_key, d_query)
import math

from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    """score(q, k) = q . M k / sqrt(d_key)"""

    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Linear(d_query, d_key, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.scale = 1 / math.sqrt(d_key)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = self.M(queries).bmm(keys.transpose(-1, -2)) * self.scale
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach()
        return self.dropout(weights).bmm(values)
