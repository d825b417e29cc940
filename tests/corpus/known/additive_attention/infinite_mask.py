# mistake: own_mask_nan
import torch
from torch import nn


class AdditiveAttention(nn.Module):
    def __init__(self, d_query, d_key, num_hiddens, dropout):
        super().__init__()
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def hidden_keys(self, shape, valid_lens):
        batch, n_queries, n_keys = shape
        if valid_lens is None:
            return torch.zeros(shape, dtype=torch.bool)
        if valid_lens.ndim == 1:
            valid_lens = valid_lens[:, None].repeat(1, n_queries)
        return torch.arange(n_keys).expand(shape) >= valid_lens[..., None]

    def forward(self, queries, keys, values, valid_lens=None):
        q, k = self.W_q(queries), self.W_k(keys)
        scores = torch.tanh(q[:, :, None] + k[:, None]) @ self.w_v.weight.squeeze(0)
        mask = self.hidden_keys(scores.shape, valid_lens)
        self.attention_weights = scores.masked_fill(mask, float("-inf")).softmax(2)
        return self.dropout(self.attention_weights) @ values
