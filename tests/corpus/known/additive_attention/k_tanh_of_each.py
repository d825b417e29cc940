# mistake: tanh_of_each_part
# tanh is applied to the projected query and the projected key separately, before they are added
import torch
import torch.nn as nn
from masked_softmax import masked_softmax


class AdditiveAttention(nn.Module):
    def __init__(self, d_query, d_key, num_hiddens, dropout):
        super(AdditiveAttention, self).__init__()
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        q = torch.tanh(self.W_q(queries))
        k = torch.tanh(self.W_k(keys))
        # every query with every key
        h = q.unsqueeze(2) + k.unsqueeze(1)
        scores = self.w_v(h).squeeze(-1)
        w = masked_softmax(scores, valid_lens)
        self.attention_weights = w
        return torch.matmul(self.dropout(w), values)
