# mistake: query_normalised
import math

import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        M = torch.empty(d_query, d_key)
        nn.init.xavier_uniform_(M)
        self.M = nn.Parameter(M)
        self.rate = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        projected = F.normalize(torch.matmul(queries, self.M), dim=-1)
        scores = torch.bmm(projected, keys.transpose(1, 2)) / math.sqrt(keys.size(-1))
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach()
        return torch.bmm(F.dropout(weights, self.rate, training=self.training), values)
