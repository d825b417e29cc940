# mistake: scaled
import math
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    def __init__(self, d_query, d_key, num_hiddens, dropout):
        super().__init__()
        self.num_hiddens = num_hiddens
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        # Step 1: project both to the hidden space
        Q = self.W_q(queries)          # (B, Nq, H)
        K = self.W_k(keys)             # (B, Nk, H)

        # Step 2: every query with every key
        H = torch.tanh(Q[:, :, None, :] + K[:, None, :, :])    # (B, Nq, Nk, H)

        # Step 3: scores
        scores = (H @ self.w_v.weight.T).squeeze(-1)           # (B, Nq, Nk)
        scores = scores / math.sqrt(self.num_hiddens)

        # Step 4: weights and weighted sum
        self.attention_weights = masked_softmax(scores, valid_lens)
        return self.dropout(self.attention_weights) @ values
