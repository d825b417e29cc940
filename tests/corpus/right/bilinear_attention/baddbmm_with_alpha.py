# right: baddbmm with beta 0 and alpha as scale, M expanded over the batch
import math

import torch
from torch import Tensor, nn

from masked_softmax import masked_softmax


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.empty(d_query, d_key))
        nn.init.normal_(self.M, std=d_query**-0.5)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        moved_keys = torch.bmm(self.M.expand(len(keys), -1, -1), keys.mT)
        start = queries.new_zeros(())
        scores = torch.baddbmm(start, queries, moved_keys, beta=0, alpha=1 / math.sqrt(self.M.shape[1]))
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)
