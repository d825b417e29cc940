# right: the twin of one with a mistake, masklate
# seen: huggingface/pytorch-image-models pull 2236: the mask is applied after the softmax, so padded keys take part in the normalisation and the rest does not sum to 1.
import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.rand(d_query, d_key) - 0.5)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        query_in_key_space = queries @ self.M
        scores = query_in_key_space @ keys.mT / math.sqrt(self.M.shape[1])
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights
        return self.dropout(weights) @ values
