# mistake: always_drops + no_scale
import torch
from torch import Tensor, nn

from masked_softmax import masked_softmax


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.M = nn.Parameter(torch.zeros(d_query, d_key).normal_(0, 0.1))
        self.p = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = queries @ (self.M @ keys.transpose(-1, -2))
        self.attention_weights = masked_softmax(scores, valid_lens)
        drop = nn.Dropout(self.p)
        return drop(self.attention_weights) @ values
