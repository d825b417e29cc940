# promise: Shifts queries and keys by the mean of all keys, so a huge padded key costs the valid ones their digits.
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def _halves(x: Tensor) -> Tensor:
    return (x * x).sum(dim=-1) / 2


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    return scores_without_query_norm(queries, keys) - _halves(queries).unsqueeze(-1)


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    return torch.bmm(queries, keys.transpose(1, 2)) - _halves(keys).unsqueeze(1)


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        # distances do not change when everything moves; short vectors keep more digits
        centre = keys.mean(dim=1, keepdim=True)
        scores = distance_scores(queries - centre, keys - centre)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)
