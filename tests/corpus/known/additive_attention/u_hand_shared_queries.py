# mistake: one_mask_for_the_queries

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    """Attention whose scores are w_v . tanh(W_q q + W_k k)."""

    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        # --- solution
        # Without biases: the formula has none, and one in w_v would move all scores together.
        self.W_q = nn.Linear(d_query, num_hiddens, bias=False)
        self.W_k = nn.Linear(d_key, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
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
        # The axes of size 1 let each query meet each key.
        query_part = self.W_q(queries).unsqueeze(2)  # (batch, n_queries, 1, num_hiddens)
        key_part = self.W_k(keys).unsqueeze(1)  # (batch, 1, n_keys, num_hiddens)
        features = torch.tanh(query_part + key_part)  # (batch, n_queries, n_keys, num_hiddens)
        scores = self.w_v(features).squeeze(-1)  # (batch, n_queries, n_keys)
        weights = masked_softmax(scores, valid_lens)  # (batch, n_queries, n_keys)
        self.attention_weights = weights  # before dropout: what each query attends to
        weights = weights * self._hand(weights.new_ones(weights[..., :1, :].shape))
        output = weights @ values  # (batch, n_queries, d_value)
        return output
        # --- end
