import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn

# q . k - |k|^2/2 - |q|^2/2 is one product: (q, 1, -|q|^2/2) . (k, -|k|^2/2, 1)


def _neg_half_norm(t: Tensor) -> Tensor:
    return torch.einsum("bnd,bnd->bn", t, t).unsqueeze(-1).mul(-0.5)


def distance_scores(queries: Tensor, keys: Tensor) -> Tensor:
    one_q = torch.ones_like(queries[..., :1])
    one_k = torch.ones_like(keys[..., :1])
    left = torch.cat([queries, one_q, _neg_half_norm(queries)], dim=-1)
    right = torch.cat([keys, _neg_half_norm(keys), one_k], dim=-1)
    return torch.einsum("bqd,bkd->bqk", left, right)


def scores_without_query_norm(queries: Tensor, keys: Tensor) -> Tensor:
    dots = torch.einsum("bqd,bkd->bqk", queries, keys)
    return dots + _neg_half_norm(keys).transpose(1, 2)


class DistanceAttention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None) -> Tensor:
        self.attention_weights = masked_softmax(distance_scores(queries, keys), valid_lens)
        return torch.einsum("bqk,bkv->bqv", self.dropout(self.attention_weights), values)
