# right: queries and keys are moved by the mean of the keys first (distances stay), which keeps the squares small
import torch
from torch import Tensor, nn

from masked_softmax import masked_softmax


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Distances do not change if both sides move by the same vector."""
    middle = keys.mean(dim=1, keepdim=True).detach()
    q, k = queries - middle, keys - middle
    return scores_without_query_norm(q, k) - q.pow(2).sum(-1, keepdim=True) / 2


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    half_kk = 0.5 * keys.square().sum(2)[:, None, :]
    return torch.bmm(queries, keys.mT) - half_kk


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        if not 0 <= dropout <= 1:
            raise ValueError("dropout is a probability")
        self.rate = dropout

    def _drop(self, weights: Tensor) -> Tensor:
        if self.rate == 1:
            return weights * 0
        keep = torch.rand_like(weights, dtype=torch.float32) >= self.rate
        return torch.where(keep, weights / (1 - self.rate), 0.0)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        weights = masked_softmax(scores_without_query_norm(queries, keys), valid_lens)
        self.attention_weights = weights
        return torch.matmul(self._drop(weights) if self.training else weights, values)
