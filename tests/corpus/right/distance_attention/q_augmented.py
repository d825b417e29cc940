import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn

# A norm that is added to a product is one more column of the two factors:
#     q . k - |k|^2 / 2  =  (q, 1) . (k, -|k|^2 / 2)


def _half_norm(x: Tensor) -> Tensor:
    return torch.linalg.vecdot(x, x).div(-2).unsqueeze(-1)


def _one(x: Tensor) -> Tensor:
    return torch.ones_like(x[..., :1])


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    left = torch.cat([queries, _half_norm(queries), _one(queries)], dim=-1)
    right = torch.cat([keys, _one(keys), _half_norm(keys)], dim=-1)
    return torch.einsum("bic,bjc->bij", left, right)


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    left = torch.cat([queries, _one(queries)], dim=-1)
    right = torch.cat([keys, _half_norm(keys)], dim=-1)
    return torch.einsum("bic,bjc->bij", left, right)


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        self.attention_weights = masked_softmax(distance_scores(queries, keys), valid_lens)
        return torch.einsum("bij,bjv->biv", self.dropout(self.attention_weights), values)
