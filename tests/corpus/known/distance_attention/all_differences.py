# mistake: all_differences
# distance_scores, which the module uses, makes the tensor of all differences, of n_queries * n_keys * d numbers
from masked_softmax import masked_softmax
from torch import Tensor, nn


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    diff = queries[:, :, None, :] - keys[:, None, :, :]
    return -(diff**2).sum(dim=-1) / 2


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    return queries @ keys.transpose(1, 2) - (keys**2).sum(-1)[:, None, :] / 2


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        scores = distance_scores(queries, keys)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return self.dropout(self.attention_weights) @ values
