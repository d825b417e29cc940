# mistake: norm_of_key_for_query
import torch
from torch import Tensor, nn

from masked_softmax import masked_softmax


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    qk = torch.bmm(queries, keys.permute(0, 2, 1))
    kk = torch.sum(keys * keys, dim=-1)
    qq = torch.sum(queries * queries, dim=-1)
    return -(qq.unsqueeze(2) + kk.unsqueeze(1) - 2 * qk) / 2


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    kk = (keys * keys).sum(-1, keepdim=True)
    return queries @ keys.transpose(1, 2) - kk / 2


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        self.attention_weights = masked_softmax(distance_scores(queries, keys), valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)
