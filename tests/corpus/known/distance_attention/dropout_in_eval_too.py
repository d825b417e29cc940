# mistake: always_drops
import torch
from torch import Tensor, nn
from torch.nn import functional as F

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
    def __init__(self, dropout: float):
        super().__init__()
        self.p = dropout

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        w = masked_softmax(distance_scores(queries, keys), valid_lens)
        self.attention_weights = w
        w = F.dropout(w, self.p)
        return w @ values
