# right: padding found from the lengths by comparing every query, values chosen by torch.where, einsum product
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


def batched_product(a: Tensor, b: Tensor) -> Tensor:
    fits = a.ndim == b.ndim == 3 and a.size(0) == b.size(0) and a.size(-1) == b.size(-2)
    if not fits:
        raise ValueError(f"no product of {list(a.shape)} and {list(b.shape)}")
    return torch.einsum("bij,bjk->bik", a, b)


class DotProductAttention(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout

    def forward(self, queries, keys, values, valid_lens=None):
        root = keys.size(2) ** 0.5
        scores = batched_product(queries, keys.mT) / root
        weights = self.attention_weights = masked_softmax(scores, valid_lens)
        if valid_lens is not None:
            lens = valid_lens.reshape(values.size(0), -1, 1)
            seen = (torch.arange(values.size(1), device=lens.device) < lens).any(dim=1)
            values = torch.where(seen[..., None], values, values.new_zeros(()))
        dropped = nn.functional.dropout(weights, p=self.dropout, training=self.training)
        return batched_product(dropped, values)
