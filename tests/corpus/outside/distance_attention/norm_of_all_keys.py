# mistake: the squares of the keys are summed over the whole item, keys and components alike
import torch
from torch import Tensor, nn

from masked_softmax import masked_softmax


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """-|q - k|^2 / 2 by expanding the square."""
    product = queries @ keys.transpose(1, 2)
    q_norm = (queries**2).sum(dim=-1, keepdim=True) / 2
    k_norm = (keys**2).sum(dim=-1).unsqueeze(1) / 2
    return product - k_norm - q_norm


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    kk = (keys**2).sum(dim=(1, 2), keepdim=True)
    return torch.bmm(queries, keys.transpose(1, 2)) - kk / 2


class DistanceAttention(nn.Module):
    """Near keys get much weight."""

    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        scores = scores_without_query_norm(queries, keys)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)
