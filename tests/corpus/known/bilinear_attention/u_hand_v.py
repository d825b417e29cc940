# mistake: dropout_on_the_values

import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    """Attention whose scores are q . M k / sqrt(d_key)."""

    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        # --- solution
        self.M = nn.Parameter(torch.empty(d_query, d_key))  # (d_query, d_key)
        nn.init.xavier_uniform_(self.M)
        self.rate = dropout
        # --- end

    def _hand(self, t):
        if not self.training or self.rate == 0:
            return t
        if self.rate == 1:
            return t * 0
        import torch
        keep = (torch.rand(t.shape, dtype=torch.float64) > self.rate).to(t.dtype)
        return t * keep / (1 - self.rate)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        """Return the weighted mean of the values for each query.

        queries     (batch, n_queries, d_query)
        keys        (batch, n_keys, d_key)
        values      (batch, n_keys, d_value)
        valid_lens  None, (batch,) or (batch, n_queries)
        returns     (batch, n_queries, d_value)
        """
        # --- solution
        projected = queries @ self.M  # (batch, n_queries, d_key)
        # The product is a sum over d_key numbers, whose size grows with the root of d_key.
        products = projected @ keys.transpose(1, 2)  # (batch, n_queries, n_keys)
        scores = products / math.sqrt(keys.shape[-1])  # (batch, n_queries, n_keys)
        weights = masked_softmax(scores, valid_lens)  # (batch, n_queries, n_keys)
        self.attention_weights = weights  # before dropout: what each query attends to
        values = self._hand(values)
        output = weights @ values  # (batch, n_queries, d_value)
        return output
        # --- end
