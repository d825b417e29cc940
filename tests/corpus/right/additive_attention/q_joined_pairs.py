import torch
from masked_softmax import masked_softmax
from torch import nn
from torch.nn import functional as F


class AdditiveAttention(nn.Module):
    # W_q q + W_k k is one layer, [W_q | W_k], applied to the joined vector (q, k) of each pair.

    def __init__(self, d_query, d_key, num_hiddens, dropout):
        super().__init__()
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.drop = nn.Dropout(dropout)

    def _pairs(self, queries, keys):
        nq, nk = queries.size(1), keys.size(1)
        left = queries.unsqueeze(2).expand(-1, -1, nk, -1)
        right = keys.unsqueeze(1).expand(-1, nq, -1, -1)
        return torch.cat((left, right), dim=3)

    def forward(self, queries, keys, values, valid_lens=None):
        joined = torch.cat((self.W_q.weight, self.W_k.weight), dim=1)
        hidden = torch.tanh(F.linear(self._pairs(queries, keys), joined))
        scores = self.w_v(hidden).flatten(2)
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach()
        return self.drop(weights).bmm(values)
