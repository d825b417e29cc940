# note: one einsum with three operands makes the scores, M is registered by name, and the scale sits on the values of a cached float
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        self.register_parameter("M", nn.Parameter(nn.init.orthogonal_(torch.empty(d_query, d_key))))
        self.temper = float(d_key) ** 0.5
        self.drop_rate = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = torch.einsum("bqi,ij,bkj->bqk", queries, self.M, keys).div(self.temper)
        self.attention_weights = masked_softmax(scores, valid_lens)
        kept = torch.dropout(self.attention_weights, self.drop_rate, self.training)
        return torch.einsum("...qk,...kv->...qv", kept, values)
