# mistake: mean_of_squares
from masked_softmax import masked_softmax
from torch import Tensor, nn


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    return queries @ keys.mT - keys.square().mean(dim=-1).unsqueeze(1) / 2


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    return scores_without_query_norm(queries, keys) - queries.square().mean(dim=-1, keepdim=True) / 2


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        weights = masked_softmax(scores_without_query_norm(queries, keys), valid_lens)
        self.attention_weights = weights
        return self.dropout(weights) @ values
