# right: torch.baddbmm that starts from the norms
import torch
from torch import Tensor, nn

from masked_softmax import masked_softmax


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    start = (queries * queries).sum(2, keepdim=True) + (keys * keys).sum(2).unsqueeze(1)
    return torch.baddbmm(start, queries, keys.transpose(1, 2), beta=-0.5, alpha=1)


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    start = torch.linalg.vecdot(keys, keys).unsqueeze(1)
    return torch.baddbmm(start, queries, keys.transpose(1, 2), beta=-0.5)


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        weights = masked_softmax(scores_without_query_norm(queries, keys), valid_lens)
        self.attention_weights = weights.detach()
        return torch.einsum("bqk,bkv->bqv", self.dropout(weights), values)
