# mistake: queries and keys are brought to length 1 in the module before they are compared
import torch
from torch import Tensor, nn

from masked_softmax import masked_softmax


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    qk = torch.bmm(queries, keys.permute(0, 2, 1))
    kk = torch.sum(keys * keys, dim=-1)
    qq = torch.sum(queries * queries, dim=-1)
    return -(qq.unsqueeze(2) + kk.unsqueeze(1) - 2 * qk) / 2


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    half_kk = 0.5 * keys.square().sum(2)[:, None, :]
    return torch.bmm(queries, keys.mT) - half_kk


class DistanceAttention(nn.Module):
    """Near keys get much weight."""

    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        q = queries / queries.norm(dim=-1, keepdim=True).clamp(min=1e-6)
        k = keys / keys.norm(dim=-1, keepdim=True).clamp(min=1e-6)
        scores = scores_without_query_norm(q, k)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.dropout(self.attention_weights), values)
