# promise: Scores are clamped to +-50000, so two keys with larger scores count the same.
import torch
from masked_softmax import masked_softmax
from torch import nn


def batched_product(a, b):
    if a.dim() != 3 or b.dim() != 3:
        raise ValueError("three axes are needed")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise ValueError("the shapes do not fit")
    return torch.einsum("bnm,bmp->bnp", a, b)


class DotProductAttention(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        q, k, v = queries.double(), keys.double(), values.double()
        scores = (batched_product(q, k.mT) * q.shape[-1] ** -0.5).clamp(-5e4, 5e4)
        weights = masked_softmax(scores, valid_lens)
        self.attention_weights = weights.detach()
        v = torch.where((weights != 0).any(1).unsqueeze(-1), v, 0.0)
        return batched_product(self.dropout(weights), v).to(values.dtype)
