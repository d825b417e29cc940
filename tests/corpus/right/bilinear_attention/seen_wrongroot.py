# right: the twin of one with a mistake, wrongroot
# seen: Graylab/DL4Proteins issue 12, omihub777/ViT-CIFAR pull 12: the scores are divided by the root of the size of the incoming vectors (d_query) instead of d_key.
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.empty(d_query, d_key))
        nn.init.xavier_uniform_(self.M)
        self.scale = math.sqrt(d_key)
        self.drop = nn.Dropout(dropout)
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        projected = torch.matmul(queries, self.M)
        scores = torch.bmm(projected, keys.transpose(1, 2)) / self.scale
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach()
        return torch.bmm(self.drop(weights), values)
