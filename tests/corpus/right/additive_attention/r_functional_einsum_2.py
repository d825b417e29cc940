import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import Tensor, nn


def _ohne_bias(ein: int, aus: int) -> nn.Linear:
    return nn.Linear(in_features=ein, out_features=aus, bias=False)


class AdditiveAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        self.W_q = _ohne_bias(d_query, num_hiddens)
        self.W_k = _ohne_bias(d_key, num_hiddens)
        self.w_v = _ohne_bias(num_hiddens, 1)
        self.rate = dropout

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None) -> Tensor:
        b, nq, _ = queries.shape
        nk = keys.shape[1]
        h = self.w_v.in_features
        q = F.linear(queries, self.W_q.weight).unsqueeze(2).expand(b, nq, nk, h)
        k = F.linear(keys, self.W_k.weight).unsqueeze(1).expand(b, nq, nk, h)
        bewertung = torch.einsum("bqkh,h->bqk", (q + k).tanh(), self.w_v.weight[0])
        self.attention_weights = masked_softmax(bewertung, valid_lens)
        gewichte = F.dropout(self.attention_weights, self.rate, self.training)
        return torch.einsum("bqk,bkv->bqv", gewichte, values)
