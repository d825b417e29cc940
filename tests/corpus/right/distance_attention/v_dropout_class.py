# right: a dropout module written by hand that remembers nothing, with torch.bernoulli on float32, and scores without the norm of the query
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    return scores_without_query_norm(queries, keys) - queries.pow(2).sum(-1, keepdim=True) / 2


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    return queries @ keys.mT - keys.pow(2).sum(-1).unsqueeze(1) / 2


class Thin(nn.Module):
    def __init__(self, rate: float):
        super().__init__()
        self.rate = rate

    def forward(self, w: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return w
        keep = 1.0 - self.rate
        kept = torch.bernoulli(torch.full(w.shape, keep, device=w.device)).bool()
        return torch.where(kept, w / max(keep, 1e-30), 0.0) if keep else w.mul(0)


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.thin = Thin(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        weights = masked_softmax(scores_without_query_norm(queries, keys), valid_lens)
        self.attention_weights = weights
        return self.thin(weights) @ values
