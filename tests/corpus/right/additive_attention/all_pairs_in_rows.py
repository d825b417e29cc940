# right: all pairs as rows by repeat_interleave and repeat, scored as a flat table, view back
import torch
from torch import Tensor, nn

from masked_softmax import masked_softmax


class AdditiveAttention(nn.Module):
    """Writes each pair of a query and a key in a row of its own."""

    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        self.W_q, self.W_k, self.w_v = (
            nn.Linear(n, m, bias=False)
            for n, m in ((d_query, num_hiddens), (d_key, num_hiddens), (num_hiddens, 1))
        )
        self.dropout = nn.Dropout(dropout)
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        (batch, n_queries, _), n_keys = queries.shape, keys.shape[1]
        q = self.W_q(queries).repeat_interleave(n_keys, dim=1)
        k = self.W_k(keys).repeat(1, n_queries, 1)
        scores = self.w_v((q + k).tanh_()).reshape(batch, n_queries, n_keys)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.matmul(self.dropout(self.attention_weights), values)
