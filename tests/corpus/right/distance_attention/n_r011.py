# style: unusual
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn
from torch.nn import functional as F


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Return minus half of the squared distance of each query to each key."""
    norms = queries.square().sum(-1).unsqueeze(2) + keys.square().sum(-1).unsqueeze(1)
    return torch.baddbmm(norms, queries, keys.transpose(1, 2), beta=-0.5, alpha=1.0)


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    """Return q . k - |k|^2 / 2 for each query and key: scores with the same softmax."""
    key_norm = torch.linalg.vecdot(keys, keys).unsqueeze(1)
    return torch.bmm(queries, keys.transpose(1, 2)) - key_norm / 2


class DistanceAttention(nn.Module):
    """Attention whose scores are -|q - k|^2 / 2. It has no parameters."""

    attention_weights: Tensor

    def __init__(self, dropout: float):
        super().__init__()
        self.rate = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        weights = masked_softmax(distance_scores(queries, keys), valid_lens)
        self.attention_weights = weights.detach().clone()
        if self.training:
            weights = F.dropout(weights, self.rate)
        return torch.bmm(weights, values)
