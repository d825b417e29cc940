# mistake: root_of_the_squared_distance
from torch import Tensor, nn
from torch.nn import functional as F

from masked_softmax import masked_softmax


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Minus half of the distance of each pair."""
    squared = (
        (queries**2).sum(-1, keepdim=True)
        + (keys**2).sum(-1).unsqueeze(1)
        - 2 * queries @ keys.transpose(1, 2)
    )
    return -squared.clamp(min=1e-12).sqrt() / 2


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    """q . k - |k|^2 / 2."""
    return queries @ keys.transpose(1, 2) - (keys**2).sum(dim=-1).unsqueeze(1) / 2


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.p = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        w = masked_softmax(distance_scores(queries, keys), valid_lens)
        self.attention_weights = w
        w = F.dropout(w, self.p, training=self.training)
        return w @ values
