# mistake: not in the catalogue: In the module, queries and keys are each centred by their own mean over the tokens before the distances are computed.
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Return minus half of the squared distance of each query to each key.

    queries  (batch, n_queries, d)
    keys     (batch, n_keys, d)
    returns  (batch, n_queries, n_keys)
    """
    q2 = queries.pow(2).sum(dim=-1, keepdim=True)
    return scores_without_query_norm(queries, keys) - q2 / 2


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    """Return q . k - |k|^2 / 2 for each query and key: scores with the same softmax.

    queries  (batch, n_queries, d)
    keys     (batch, n_keys, d)
    returns  (batch, n_queries, n_keys)
    """
    dots = queries @ keys.transpose(1, 2)
    k2 = keys.pow(2).sum(dim=-1)
    return dots - k2.unsqueeze(1) / 2


class DistanceAttention(nn.Module):
    """Attention whose scores are -|q - k|^2 / 2. It has no parameters."""

    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        # distances do not change when everything is shifted, and small numbers lose less digits
        q = queries - queries.mean(dim=1, keepdim=True)
        k = keys - keys.mean(dim=1, keepdim=True)
        scores = scores_without_query_norm(q, k)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)
