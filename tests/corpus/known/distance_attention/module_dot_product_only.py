# mistake: attends_by_products
# the module drops both norms as if neither mattered for the softmax, so its weights are those of the plain dot product
from masked_softmax import masked_softmax
from torch import Tensor, nn


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    qq = (queries * queries).sum(-1)[:, :, None]
    return scores_without_query_norm(queries, keys) - 0.5 * qq


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    kk = (keys * keys).sum(-1)[:, None, :]
    return queries @ keys.mT - 0.5 * kk


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        # constants do not change a softmax, so the norms can go
        scores = queries @ keys.mT
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach()
        return self.dropout(weights) @ values
