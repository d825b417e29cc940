# mistake: dropout_on_queries_or_keys

from masked_softmax import masked_softmax
from torch import Tensor, nn


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Return minus half of the squared distance of each query to each key.

    queries  (batch, n_queries, d)
    keys     (batch, n_keys, d)
    returns  (batch, n_queries, n_keys)
    """
    # --- solution
    query_norms = queries.square().sum(dim=-1)  # (batch, n_queries)
    partial = scores_without_query_norm(queries, keys)  # (batch, n_queries, n_keys)
    return partial - query_norms.unsqueeze(2) / 2  # (batch, n_queries, n_keys)
    # --- end


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    """Return q . k - |k|^2 / 2 for each query and key: scores with the same softmax.

    queries  (batch, n_queries, d)
    keys     (batch, n_keys, d)
    returns  (batch, n_queries, n_keys)
    """
    # --- solution
    products = queries @ keys.transpose(1, 2)  # (batch, n_queries, n_keys)
    key_norms = keys.square().sum(dim=-1)  # (batch, n_keys)
    return products - key_norms.unsqueeze(1) / 2  # (batch, n_queries, n_keys)
    # --- end


class DistanceAttention(nn.Module):
    """Attention whose scores are -|q - k|^2 / 2. It has no parameters."""

    def __init__(self, dropout: float):
        super().__init__()
        # --- solution
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

        queries     (batch, n_queries, d)
        keys        (batch, n_keys, d)
        values      (batch, n_keys, d_value)
        valid_lens  None, (batch,) or (batch, n_queries)
        returns     (batch, n_queries, d_value)
        """
        # --- solution
        # The norm of a query is the same for all its keys, so the softmax does not see it.
        keys = self._hand(keys)
        scores = scores_without_query_norm(queries, keys)  # (batch, n_queries, n_keys)
        weights = masked_softmax(scores, valid_lens)  # (batch, n_queries, n_keys)
        self.attention_weights = weights  # before dropout: what each query attends to
        output = weights @ values  # (batch, n_queries, d_value)
        return output
        # --- end
