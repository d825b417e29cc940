# mistake: axes_exchanged
import torch
from torch import Tensor, nn

from masked_softmax import masked_softmax


class AdditiveAttention(nn.Module):
    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        batch, n_queries, _ = queries.shape
        n_keys = keys.shape[1]
        q = self.W_q(queries).repeat(1, n_keys, 1)
        k = self.W_k(keys).repeat_interleave(n_queries, dim=1)
        scores = self.w_v(torch.tanh(q + k)).view(batch, n_queries, n_keys)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)
