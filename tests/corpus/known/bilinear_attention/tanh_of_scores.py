# mistake: tanh_of_the_scores
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from masked_softmax import masked_softmax


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.d_key = d_key
        self.rate = dropout
        self.M = nn.Parameter(torch.randn(d_query, d_key) / d_query**0.5)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        s = torch.einsum("bqi,ij,bkj->bqk", queries, self.M, keys)
        s = s / self.d_key**0.5
        w = masked_softmax(torch.tanh(s), valid_lens)
        self.attention_weights = w
        w = F.dropout(w, self.rate, training=self.training)
        return w @ values
