# mistake: cross_term_halved
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    q2 = (queries**2).sum(-1)[:, :, None]
    k2 = (keys**2).sum(-1)[:, None, :]
    qk = torch.bmm(queries, keys.transpose(1, 2))
    return -0.5 * (q2 + k2 - qk)


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    k2 = (keys**2).sum(-1)[:, None, :]
    return torch.bmm(queries, keys.transpose(1, 2)) - 0.5 * k2


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.drop = nn.Dropout(p=dropout)
        self.attention_weights = None

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        self.attention_weights = masked_softmax(distance_scores(queries, keys), valid_lens)
        return torch.bmm(self.drop(self.attention_weights), values)
