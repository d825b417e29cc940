# right: baddbmm onto an expanded row of norms, from torch.linalg; the module moves the origin to the mean of the queries
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def energy(x: Tensor) -> Tensor:
    """Half of the squared length of each vector."""
    return torch.linalg.vecdot(x, x).mul(0.5)


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    norms = energy(keys).unsqueeze(-2).expand(-1, queries.size(1), -1)
    return torch.baddbmm(norms, queries, keys.mT, beta=-1)


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    return scores_without_query_norm(queries, keys).sub(energy(queries).unsqueeze(-1))


class DistanceAttention(nn.Module):
    attention_weights: Tensor

    def __init__(self, dropout: float):
        super().__init__()
        self.keep = nn.Sequential(nn.Identity(), nn.Dropout(dropout))

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        # the mean of the queries as the origin: distances stay the same
        origin = queries.mean(dim=1, keepdim=True)
        scores = scores_without_query_norm(queries - origin, keys - origin)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.einsum("bqk,bkd->bqd", self.keep(self.attention_weights), values)
