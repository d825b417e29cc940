# mistake: the module takes exp of the scores (a Gaussian kernel) and then the softmax
from torch import Tensor, nn
from torch.nn import functional as F

from masked_softmax import masked_softmax


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    qq = queries.square().sum(2)[:, :, None]
    return scores_without_query_norm(queries, keys) - 0.5 * qq


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
        w = masked_softmax(distance_scores(queries, keys).exp(), valid_lens)
        self.attention_weights = w
        w = F.dropout(w, self.p, training=self.training)
        return w @ values
