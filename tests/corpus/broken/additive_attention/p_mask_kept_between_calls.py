# promise: The dropout mask is drawn once per shape and reused in later calls, so the same weights are always dropped.
import torch
from masked_softmax import masked_softmax
from torch import nn


class AdditiveAttention(nn.Module):
    def __init__(self, d_query, d_key, num_hiddens, dropout):
        super().__init__()
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.dropout = nn.Dropout(dropout)
        self._factor = None

    def _drop(self, weights):
        if not self.training:
            return weights
        if self._factor is None or self._factor.shape != weights.shape:
            self._factor = self.dropout(torch.ones_like(weights)).detach()
        return weights * self._factor.to(weights)

    def forward(self, queries, keys, values, valid_lens=None):
        hidden = torch.tanh(self.W_q(queries).unsqueeze(2) + self.W_k(keys).unsqueeze(1))
        weights = masked_softmax(self.w_v(hidden).squeeze(-1), valid_lens)
        self.attention_weights = weights.detach()
        return torch.bmm(self._drop(weights), values)
