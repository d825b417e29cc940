# right: the twin of one with a mistake, nottransposed
# seen: io-papercode/pwa issue 1: the norms of the keys are not transposed, so they are subtracted along the queries (or do not fit).
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def _norms(x: Tensor) -> Tensor:
    return torch.einsum("bnd,bnd->bn", x, x).unsqueeze(-1)


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    products = torch.einsum("bid,bjd->bij", queries, keys)
    return products - (_norms(queries) + _norms(keys).transpose(1, 2)) / 2


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    return torch.einsum("bid,bjd->bij", queries, keys) - _norms(keys).mT / 2


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        weights = masked_softmax(distance_scores(queries, keys), valid_lens)
        self.attention_weights = weights
        return torch.einsum("bij,bjv->biv", self.dropout(weights), values)
