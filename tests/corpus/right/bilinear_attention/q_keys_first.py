import torch
from masked_softmax import masked_softmax
from torch import nn
from torch.nn import functional as F
from torch.nn import init


class BilinearAttention(nn.Module):
    """M takes the keys into the space of the queries; a key is a column, as in the formula M k."""

    def __init__(self, d_query, d_key, dropout):
        super().__init__()
        self.register_parameter("M", nn.Parameter(torch.empty(d_query, d_key)))
        init.xavier_uniform_(self.M)
        self.p = dropout

    def forward(self, queries, keys, values, valid_lens=None):
        d_query, d_key = self.M.shape
        batch = keys.shape[0]
        M = self.M.div(d_key**0.5).unsqueeze(0).expand(batch, d_query, d_key)
        columns = torch.bmm(M, keys.transpose(1, 2))  # (batch, d_query, n_keys)
        weights = masked_softmax(torch.bmm(queries, columns), valid_lens)
        self.attention_weights = weights.detach()
        return torch.bmm(F.dropout(weights, self.p, self.training), values)
