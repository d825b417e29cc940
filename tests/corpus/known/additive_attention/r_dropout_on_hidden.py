# mistake: dropout_on_features
import torch
from torch import nn
from masked_softmax import masked_softmax


class AdditiveAttention(nn.Module):
    def __init__(self, d_query, d_key, num_hiddens, dropout):
        super().__init__()
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        queries, keys = self.W_q(queries), self.W_k(keys)
        features = queries.unsqueeze(2) + keys.unsqueeze(1)
        features = self.dropout(torch.tanh(features))
        scores = self.w_v(features).squeeze(-1)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.attention_weights, values)
