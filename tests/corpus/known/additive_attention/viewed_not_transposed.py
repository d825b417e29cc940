# mistake: axes_exchanged
# the scores are made with the keys before the queries, and are reshaped instead of transposed to (batch, n_queries, n_keys), which mixes up the pairs
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None) -> Tensor:
        batch, n_queries, _ = queries.shape
        n_keys = keys.shape[1]
        hidden = torch.tanh(self.W_q(queries).unsqueeze(1) + self.W_k(keys).unsqueeze(2))
        scores = self.w_v(hidden).reshape(batch, n_queries, n_keys)
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights
        return self.dropout(weights) @ values
